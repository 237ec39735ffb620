use super::*;
use futures::FutureExt as _;

const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

fn evicted_indices(connections: &[AdmittedConnection]) -> Vec<usize> {
    let evicted =
        connections.iter().enumerate().filter(|(_, admitted)| admitted.evicted().is_cancelled());
    evicted.map(|(at, _)| at).collect()
}

#[test]
fn a_newcomer_ends_the_oldest_unauthenticated_connection_and_no_authenticated_one() {
    let table = ConnectionTable::new(ConnectionLimit::authenticated(8));
    let first = table.admit(HERE);
    first.handle().mark_authenticated(ConnectionOwner::Administrator);
    let connections: Vec<AdmittedConnection> = (0..6).map(|_| table.admit(HERE)).collect();
    // An unauthenticated request does not renew the age.
    drop(connections[2].handle().begin_request());
    let more = table.admit(HERE);
    assert_eq!(evicted_indices(&connections), [0, 1, 2]);
    assert!(!first.evicted().is_cancelled() && !more.evicted().is_cancelled());
    // An evicted connection cannot authenticate any more, and its end changes no count.
    connections[0].handle().mark_authenticated(ConnectionOwner::Administrator);
    drop(connections);
    assert_eq!(table.state.lock().unauthenticated.len(), 1);
    assert_eq!(table.state.lock().authenticated.len(), 1);
    drop((first, more));
    let state = table.state.lock();
    assert!(
        state.unauthenticated.is_empty()
            && state.authenticated.is_empty()
            && state.peers.is_empty()
    );
}

#[test]
fn unauthenticated_connections_leave_half_of_the_limit_to_authenticated_ones() {
    let table = ConnectionTable::new(ConnectionLimit::authenticated(8));
    let unauthenticated: Vec<AdmittedConnection> = (0..100).map(|_| table.admit(HERE)).collect();
    assert_eq!(evicted_indices(&unauthenticated).len(), 96);
    let authenticated: Vec<AdmittedConnection> = (0..6)
        .map(|_| {
            let admitted = table.admit(HERE);
            admitted.handle().mark_authenticated(ConnectionOwner::Administrator);
            admitted
        })
        .collect();
    assert_eq!(evicted_indices(&authenticated), [0; 0]);
    let state = table.state.lock();
    assert_eq!((state.authenticated.len(), state.unauthenticated.len()), (6, 2));
}

#[test]
fn a_network_of_peers_has_a_share_and_loopback_has_no_limit_of_its_own() {
    let table = ConnectionTable::new(ConnectionLimit::authenticated(16));
    let here: Vec<AdmittedConnection> = (0..3).map(|_| table.admit(HERE)).collect();
    let at = |text: &str| text.parse::<IpAddr>().unwrap();
    let mut far = Vec::new();
    for last in 1..=10 {
        far.push(table.admit(at(&format!("2001:db8::{last}"))));
    }
    assert_eq!((evicted_indices(&far), evicted_indices(&here)), ((0..6).collect(), vec![]));
    // The same machine in another form of its address.
    let table = ConnectionTable::new(ConnectionLimit::authenticated(16));
    let both: Vec<AdmittedConnection> =
        ["10.0.0.1", "::ffff:10.0.0.1", "10.0.0.1", "::ffff:10.0.0.1", "10.0.0.1"]
            .into_iter()
            .map(|text| table.admit(at(text)))
            .collect();
    assert_eq!(evicted_indices(&both), [0]);
    let table = ConnectionTable::new(ConnectionLimit::authenticated(16));
    let mapped: Vec<AdmittedConnection> =
        (0..8).map(|_| table.admit(at("::ffff:127.0.0.1"))).collect();
    assert_eq!(evicted_indices(&mapped).len(), 0, "loopback has the whole share, in whatever form");
}

#[test]
fn without_authentication_the_connection_with_the_oldest_request_ends() {
    let table = ConnectionTable::new(ConnectionLimit::anonymous(3));
    let connections: Vec<AdmittedConnection> = (0..3).map(|_| table.admit(HERE)).collect();
    let handle = connections[0].handle();
    let request = handle.begin_request();
    let fourth = table.admit(HERE);
    assert_eq!(evicted_indices(&connections), [1]);
    // A request in progress does not protect a connection: it is the oldest when others sent
    // requests since.
    drop(connections[2].handle().begin_request());
    drop(fourth.handle().begin_request());
    let fifth = table.admit(HERE);
    assert_eq!(evicted_indices(&connections), [0, 1]);
    drop(request);
    assert!(!fourth.evicted().is_cancelled() && !fifth.evicted().is_cancelled());
}

#[test]
fn at_the_limit_the_longest_idle_authenticated_connection_ends() {
    let table = ConnectionTable::new(ConnectionLimit::authenticated(3));
    let (connections, requests): (Vec<AdmittedConnection>, Vec<RequestGuard>) = (0..3)
        .map(|_| {
            let admitted = table.admit(HERE);
            admitted.handle().mark_authenticated(ConnectionOwner::Administrator);
            let request = admitted.handle().begin_request();
            (admitted, request)
        })
        .unzip();
    assert!(table.wait_for_capacity().now_or_never().is_none(), "none is idle");
    drop(requests);
    assert!(table.wait_for_capacity().now_or_never().is_some());
    assert_eq!(evicted_indices(&connections), [0]);
    assert!(table.free_descriptor(), "without unauthenticated connections, the next idle one ends");
    assert_eq!(evicted_indices(&connections), [0, 1]);
}

#[test]
fn a_user_with_many_busy_connections_keeps_no_other_client_out() {
    let table = ConnectionTable::new(ConnectionLimit::authenticated(6));
    let mut requests = Vec::new();
    let mut busy = |client: ConnectionOwner<'_>| {
        assert!(table.wait_for_capacity().now_or_never().is_some(), "{client:?} is admitted");
        let admitted = table.admit(HERE);
        admitted.handle().mark_authenticated(client);
        requests.push(admitted.handle().begin_request());
        admitted
    };
    let administrator = busy(ConnectionOwner::Administrator);
    let other = busy(ConnectionOwner::User("system:serviceaccount:a"));
    let greedy: Vec<AdmittedConnection> =
        (0..8).map(|_| busy(ConnectionOwner::User("greedy"))).collect();
    assert_eq!(
        evicted_indices(&greedy),
        [0, 1, 2, 3],
        "connections of one user end for newcomers of the same user"
    );
    let newcomers = [busy(ConnectionOwner::User("b")), busy(ConnectionOwner::Administrator)];
    assert_eq!(evicted_indices(&greedy), [0, 1, 2, 3, 4, 5]);
    assert_eq!(evicted_indices(&[administrator, other]), [0; 0]);
    assert_eq!(evicted_indices(&newcomers), [0; 0]);
    assert!(table.free_descriptor(), "one more ends when no file descriptors are left");
    drop((greedy, newcomers, requests));
    let state = table.state.lock();
    assert!(state.authenticated.is_empty() && state.users.is_empty());
}

#[test]
fn unauthenticated_connections_with_long_heads_end() {
    let table = ConnectionTable::new(ConnectionLimit::authenticated(2048));
    let quiet = table.admit(HERE);
    quiet.handle().count_received(1000);
    let authenticated = table.admit(HERE);
    authenticated.handle().mark_authenticated(ConnectionOwner::User("jane"));
    authenticated.handle().count_received(2 * MAX_UNREAD);
    let connections: Vec<AdmittedConnection> = (0..200).map(|_| table.admit(HERE)).collect();
    for admitted in &connections {
        admitted.handle().count_received(256 << 10);
    }
    let remaining = (MAX_UNREAD - 1000) / (256 << 10);
    assert_eq!(
        evicted_indices(&connections),
        (0..200 - remaining).collect::<Vec<_>>(),
        "the oldest of them"
    );
    assert_eq!(evicted_indices(&[quiet, authenticated]), [0; 0]);
    // A complete head does not count any more, nor does a connection that has ended.
    drop(connections[199].handle().begin_request());
    drop(connections);
    assert_eq!(table.unread.load(Ordering::Relaxed), 0);
}

#[test]
fn a_limit_is_no_larger_than_half_of_the_open_files_limit() {
    let files = getrlimit(Resource::Nofile).current.map(|files| usize::try_from(files).unwrap());
    let ConnectionLimit { max, .. } = ConnectionLimit::anonymous(usize::MAX);
    assert_eq!(Some(max), files.map(|files| files / 2).or(Some(usize::MAX)));
    assert_eq!(ConnectionLimit::authenticated(0).max, 1);
}

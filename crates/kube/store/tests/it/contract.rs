//! What holds on every engine.

use crate::support::{delete, in_memory, key, put, shown};
use mainstay_store::{CommitError, Expect};

#[tokio::test]
async fn expectations_are_held() {
    let store = in_memory();
    assert_eq!(store.revision(), 1);
    let at = ("a", "x");
    assert!(matches!(
        put(&store, at, "1", Expect::Revision(1)).await,
        Err(CommitError::Missing(_))
    ));
    assert!(matches!(delete(&store, at, Expect::Any).await, Err(CommitError::Missing(_))));
    let first = put(&store, at, "1", Expect::Absent).await.unwrap();
    assert_eq!(shown(&first), "a/x=1@2");
    assert!(matches!(
        put(&store, at, "2", Expect::Absent).await,
        Err(CommitError::AlreadyExists { .. })
    ));
    let stale = put(&store, at, "2", Expect::Revision(1)).await.unwrap_err();
    assert_eq!(stale.to_string(), "configmaps a/x is at revision 2, not 1");
    let second = put(&store, at, "2", Expect::Revision(2)).await.unwrap();
    assert_eq!(shown(&second), "a/x=2@3");
    assert!(matches!(
        delete(&store, at, Expect::Revision(2)).await,
        Err(CommitError::Stale { .. })
    ));
    let gone = delete(&store, at, Expect::Revision(3)).await.unwrap();
    assert_eq!(shown(&gone), "a/x=2@4");
    assert!(store.get(&key("a", "x")).is_none());
    assert_eq!(store.revision(), 4);
}

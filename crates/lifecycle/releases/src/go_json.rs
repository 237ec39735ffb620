//! The JSON of rendered objects as upstream's renderer holds them: typed ones in the order of their Go fields.
//!
//! The file of an object in the chart is named by a digest of this JSON, and the names decide the order of
//! objects of one kind. Objects that the renderer makes are Go structs. Other objects of the bundle, and those
//! of the certificate provider, are maps with sorted keys.

use mainstay_gocompat::json::{self, Html, JsonWriter, Numbers};
use mainstay_object::Gvk;
use mainstay_schema::builtin::{self, FieldType, JsonForm, TypeDefinition};
use serde_json::{Map, Value};

/// The JSON of each object, in the order of the renderer.
pub(crate) fn object_jsons(objects: &[Value]) -> Vec<String> {
    let typed = typed_objects(objects);
    let one = |(object, typed): (&Value, bool)| match (object, typed.then(|| definition(object))) {
        (Value::Object(fields), Some(Some(definition))) => {
            let mut out = String::new();
            let mut writer = JsonWriter::compact(&mut out, Html::Escaped, Numbers::Object);
            write_struct(&mut writer, fields, definition);
            out
        }
        _ => json::value(object, Html::Escaped, Numbers::Object),
    };
    objects.iter().zip(typed).map(one).collect()
}

fn definition(object: &Value) -> Option<&'static TypeDefinition> {
    let gvk = Gvk::from_api_version(object["apiVersion"].as_str()?, object["kind"].as_str()?);
    builtin::definition(&builtin::definition_name(&gvk.group, &gvk.version, &gvk.kind)?)
}

/// The stages of the renderer, in their order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RenderStage {
    ServiceAccounts,
    Permissions,
    ClusterPermissions,
    Definitions,
    OtherObjects,
    Deployments,
    Webhooks,
    Services,
    Certificates,
}

/// Which objects are Go structs. The order of the renderer tells generated objects from those of the
/// bundle: permissions come as a role and a binding of the same name.
fn typed_objects(objects: &[Value]) -> Vec<bool> {
    let kind = |at: usize| objects.get(at).and_then(|object| object["kind"].as_str()).unwrap_or("");
    let name = |at: usize| objects.get(at).map(|object| &object["metadata"]["name"]);
    let mut stage = RenderStage::ServiceAccounts;
    let mut binding_of_role = false;
    let mut typed = Vec::with_capacity(objects.len());
    for at in 0..objects.len() {
        let pair = |binding: &str| kind(at + 1) == binding && name(at) == name(at + 1);
        let found = match kind(at) {
            "ServiceAccount" if stage <= RenderStage::ServiceAccounts => {
                RenderStage::ServiceAccounts
            }
            "Role" if stage <= RenderStage::Permissions && pair("RoleBinding") => {
                RenderStage::Permissions
            }
            "ClusterRole"
                if stage <= RenderStage::ClusterPermissions && pair("ClusterRoleBinding") =>
            {
                RenderStage::ClusterPermissions
            }
            "RoleBinding" | "ClusterRoleBinding" if binding_of_role => stage,
            "CustomResourceDefinition" if stage <= RenderStage::Definitions => {
                RenderStage::Definitions
            }
            "Deployment" => RenderStage::Deployments,
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
                RenderStage::Webhooks
            }
            "Service" if stage >= RenderStage::Deployments => RenderStage::Services,
            _ if stage >= RenderStage::Deployments => RenderStage::Certificates,
            _ => RenderStage::OtherObjects,
        };
        binding_of_role = matches!(kind(at), "Role" | "ClusterRole")
            && matches!(found, RenderStage::Permissions | RenderStage::ClusterPermissions);
        stage = stage.max(found);
        typed.push(!matches!(found, RenderStage::OtherObjects | RenderStage::Certificates));
    }
    typed
}

fn write_struct(
    writer: &mut JsonWriter<'_>,
    fields: &Map<String, Value>,
    definition: &TypeDefinition,
) {
    writer.open('{');
    for field in definition.declared_fields() {
        if let Some(value) = fields.get(&*field.name) {
            writer.key(&field.name);
            write_typed(writer, value, Some(&field.ty));
        }
    }
    for (name, value) in fields {
        if definition.field(name).is_none() {
            writer.key(name);
            writer.value(value);
        }
    }
    writer.close('}');
}

fn write_typed(writer: &mut JsonWriter<'_>, value: &Value, ty: Option<&FieldType>) {
    match (value, ty) {
        (Value::Object(fields), Some(FieldType::Object(reference))) => {
            match struct_definition(reference.definition()) {
                Some(definition) => write_struct(writer, fields, definition),
                None => writer.value(value),
            }
        }
        // A union of a schema and a list of schemas.
        (Value::Array(items), Some(FieldType::Object(_))) => {
            writer.open('[');
            for item in items {
                write_typed(writer, item, ty);
            }
            writer.close(']');
        }
        (Value::Array(items), Some(list)) => {
            writer.open('[');
            for item in items {
                write_typed(writer, item, list.element());
            }
            writer.close(']');
        }
        (Value::Object(fields), Some(map @ FieldType::Map(_))) => {
            writer.open('{');
            for (name, value) in fields {
                writer.key(name);
                write_typed(writer, value, map.element());
            }
            writer.close('}');
        }
        _ => writer.value(value),
    }
}

/// The Go struct whose fields the JSON of the type has; none for free values.
fn struct_definition(
    definition: Option<&'static TypeDefinition>,
) -> Option<&'static TypeDefinition> {
    let definition = definition?;
    let unions =
        ["JSONSchemaPropsOrBool", "JSONSchemaPropsOrArray", "JSONSchemaPropsOrStringArray"];
    if unions.contains(&definition.short_name()) {
        let package = definition.name().strip_suffix(definition.short_name())?;
        return builtin::definition(&format!("{package}JSONSchemaProps"));
    }
    (definition.json_form() == JsonForm::Object).then_some(definition)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(kind: &str, name: &str) -> Value {
        json!({"kind": kind, "metadata": {"name": name}})
    }

    #[test]
    fn objects_of_the_bundle_are_told_from_generated_ones_by_their_place() {
        let objects = [
            (object("ServiceAccount", "a"), true),
            (object("ClusterRole", "b"), true),
            (object("ClusterRoleBinding", "b"), true),
            // Of the bundle: no binding of the same name follows.
            (object("ClusterRole", "c"), false),
            (object("ClusterRoleBinding", "d"), false),
            (object("ServiceAccount", "e"), false),
            (object("Service", "f"), false),
            (object("Deployment", "g"), true),
            (object("ValidatingWebhookConfiguration", "h"), true),
            (object("Service", "i"), true),
            (object("Certificate", "j"), false),
        ];
        let (objects, wanted): (Vec<Value>, Vec<bool>) = objects.into_iter().unzip();
        assert_eq!(typed_objects(&objects), wanted);
    }

    #[test]
    fn generated_objects_have_the_order_of_their_go_fields() {
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "r"},
            "rules": [{"apiGroups": ["a"], "resources": ["b"], "verbs": ["c"]}],
        });
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "r"},
        });
        assert_eq!(
            object_jsons(&[role, binding])[0],
            "{\"kind\":\"ClusterRole\",\"apiVersion\":\"rbac.authorization.k8s.io/v1\",\
             \"metadata\":{\"name\":\"r\"},\
             \"rules\":[{\"verbs\":[\"c\"],\"apiGroups\":[\"a\"],\"resources\":[\"b\"]}]}"
        );
    }
}

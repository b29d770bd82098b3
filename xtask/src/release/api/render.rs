//! Types and signatures of rustdoc's JSON as text.

use serde_json::Value;

const NULL: Value = Value::Null;

fn at<'a>(value: &'a Value, key: &str) -> &'a Value {
    value.get(key).unwrap_or(&NULL)
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn joined(parts: impl Iterator<Item = String>, between: &str) -> String {
    parts.collect::<Vec<_>>().join(between)
}

/// `fn(&self, Type) -> Output`, without the names of the arguments, which are nobody's concern.
pub(super) fn function(function: &Value) -> String {
    let header = at(function, "header");
    let mut out = String::new();
    for (flag, word) in [("is_const", "const "), ("is_async", "async "), ("is_unsafe", "unsafe ")] {
        if at(header, flag).as_bool() == Some(true) {
            out += word;
        }
    }
    let sig = at(function, "sig");
    let inputs = list(at(sig, "inputs")).map(|input| {
        let (name, of) = (text(input.get(0).unwrap_or(&NULL)), ty(input.get(1).unwrap_or(&NULL)));
        if name == "self" { of.replace("Self", "self") } else { of }
    });
    out += &format!("fn{}({})", generics(at(function, "generics")), joined(inputs, ", "));
    if !at(sig, "output").is_null() {
        out += &format!(" -> {}", ty(at(sig, "output")));
    }
    out + &wheres(at(function, "generics"))
}

/// `<'a, T: Bound, const N: usize>`, or nothing.
pub(super) fn generics(generics: &Value) -> String {
    let params = list(at(generics, "params")).filter_map(|param| {
        let (name, kind) = (text(at(param, "name")), at(param, "kind"));
        if let Some(of) = kind.get("type") {
            if at(of, "is_synthetic").as_bool() == Some(true) {
                return None;
            }
            let bounds = bounds(at(of, "bounds"));
            let default = at(of, "default");
            let default = if default.is_null() { String::new() } else { format!(" = {}", ty(default)) };
            return Some(format!(
                "{name}{}{default}",
                if bounds.is_empty() { bounds } else { format!(": {bounds}") }
            ));
        }
        if let Some(of) = kind.get("const") {
            return Some(format!("const {name}: {}", ty(at(of, "type"))));
        }
        Some(name.to_owned())
    });
    let params: Vec<String> = params.collect();
    if params.is_empty() { String::new() } else { format!("<{}>", params.join(", ")) }
}

/// ` where T: Bound`, or nothing.
pub(super) fn wheres(generics: &Value) -> String {
    let predicates = list(at(generics, "where_predicates")).filter_map(|predicate| {
        if let Some(bound) = predicate.get("bound_predicate") {
            return Some(format!("{}: {}", ty(at(bound, "type")), bounds(at(bound, "bounds"))));
        }
        if let Some(lifetime) = predicate.get("lifetime_predicate") {
            let outlives = joined(list(at(lifetime, "outlives")).map(|one| text(one).to_owned()), " + ");
            return Some(format!("{}: {outlives}", text(at(lifetime, "lifetime"))));
        }
        let equal = predicate.get("eq_predicate")?;
        Some(format!("{} = {}", ty(at(equal, "lhs")), term(at(equal, "rhs"))))
    });
    let predicates: Vec<String> = predicates.collect();
    if predicates.is_empty() { String::new() } else { format!(" where {}", predicates.join(", ")) }
}

fn term(term: &Value) -> String {
    term.get("type").map_or_else(|| text(at(at(term, "constant"), "expr")).to_owned(), ty)
}

/// `A + ?Sized + 'a`.
pub(super) fn bounds(bounds: &Value) -> String {
    let parts = list(bounds).map(|bound| {
        if let Some(of) = bound.get("trait_bound") {
            let maybe = if text(at(of, "modifier")) == "maybe" { "?" } else { "" };
            return format!("{maybe}{}", path(at(of, "trait")));
        }
        if let Some(lifetime) = bound.get("outlives") {
            return text(lifetime).to_owned();
        }
        "use<..>".to_owned()
    });
    joined(parts, " + ")
}

/// The last name of a path, which does not depend on how the source wrote it, with its arguments.
pub(super) fn path(path: &Value) -> String {
    let name = text(at(path, "path"));
    let name = name.rsplit("::").next().unwrap_or(name);
    format!("{name}{}", arguments(at(path, "args")))
}

fn arguments(args: &Value) -> String {
    if let Some(parenthesized) = args.get("parenthesized") {
        let inputs = joined(list(at(parenthesized, "inputs")).map(ty), ", ");
        let output = at(parenthesized, "output");
        let output = if output.is_null() { String::new() } else { format!(" -> {}", ty(output)) };
        return format!("({inputs}){output}");
    }
    let Some(angle) = args.get("angle_bracketed") else { return String::new() };
    let plain = list(at(angle, "args")).map(|arg| {
        if let Some(of) = arg.get("type") {
            return ty(of);
        }
        if let Some(lifetime) = arg.get("lifetime") {
            return text(lifetime).to_owned();
        }
        arg.get("const").map_or_else(|| "_".to_owned(), |of| text(at(of, "expr")).to_owned())
    });
    let constraints = list(at(angle, "constraints")).map(|constraint| {
        let name = text(at(constraint, "name"));
        let binding = at(constraint, "binding");
        match binding.get("equality") {
            Some(equal) => format!("{name} = {}", term(equal)),
            None => format!("{name}: {}", bounds(at(binding, "constraint"))),
        }
    });
    let all = joined(plain.chain(constraints), ", ");
    if all.is_empty() { all } else { format!("<{all}>") }
}

pub(super) fn ty(of: &Value) -> String {
    if let Some(word) = of.as_str() {
        return if word == "infer" { "_".to_owned() } else { word.to_owned() };
    }
    let Some((kind, of)) = of.as_object().and_then(|object| object.iter().next()) else {
        return String::new();
    };
    match kind.as_str() {
        "resolved_path" => path(of),
        "generic" | "primitive" => text(of).to_owned(),
        "tuple" => format!("({})", joined(list(of).map(ty), ", ")),
        "slice" => format!("[{}]", ty(of)),
        "array" => format!("[{}; {}]", ty(at(of, "type")), text(at(of, "len"))),
        "impl_trait" => format!("impl {}", bounds(of)),
        "dyn_trait" => {
            let traits = list(at(of, "traits")).map(|one| path(at(one, "trait")));
            let lifetime = of.get("lifetime").and_then(Value::as_str).map(str::to_owned);
            format!("dyn {}", joined(traits.chain(lifetime), " + "))
        }
        "borrowed_ref" => {
            let lifetime = at(of, "lifetime").as_str().map(|name| format!("{name} ")).unwrap_or_default();
            let is_mutable = at(of, "is_mutable").as_bool() == Some(true);
            format!("&{lifetime}{}{}", if is_mutable { "mut " } else { "" }, ty(at(of, "type")))
        }
        "raw_pointer" => format!("*{}", ty(at(of, "type"))),
        "qualified_path" => {
            let (owner, name) = (ty(at(of, "self_type")), text(at(of, "name")));
            match at(of, "trait") {
                Value::Null => format!("{owner}::{name}"),
                owner_trait if text(at(owner_trait, "path")).is_empty() => format!("{owner}::{name}"),
                owner_trait => format!("<{owner} as {}>::{name}", path(owner_trait)),
            }
        }
        "function_pointer" => function(of),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_signature_reads_as_it_is_written() {
        let of = json!({
            "header": { "is_const": false, "is_async": true, "is_unsafe": false },
            "generics": { "params": [{ "name": "T", "kind": { "type": { "bounds": [{ "trait_bound": {
                "trait": { "path": "crate::Handler", "args": null }, "modifier": "none" } }], "default": null, "is_synthetic": false } } }],
                "where_predicates": [] },
            "sig": { "inputs": [
                ["self", { "borrowed_ref": { "lifetime": null, "is_mutable": true, "type": { "generic": "Self" } } }],
                ["text", { "borrowed_ref": { "lifetime": "'a", "is_mutable": false, "type": { "primitive": "str" } } }],
                ["more", { "resolved_path": { "path": "std::vec::Vec", "args": { "angle_bracketed": {
                    "args": [{ "type": { "slice": { "primitive": "u8" } } }], "constraints": [] } } } }],
            ], "output": { "tuple": [{ "generic": "T" }, { "qualified_path": {
                "self_type": { "generic": "T" }, "name": "Out", "trait": { "path": "Handler", "args": null } } }] } },
        });
        assert_eq!(
            function(&of),
            "async fn<T: Handler>(&mut self, &'a str, Vec<[u8]>) -> (T, <T as Handler>::Out)"
        );
    }

    #[test]
    fn closures_and_opaque_types_keep_their_bounds() {
        let of = json!({ "impl_trait": [
            { "trait_bound": { "trait": { "path": "Fn", "args": { "parenthesized": {
                "inputs": [{ "primitive": "u8" }], "output": { "primitive": "bool" } } } }, "modifier": "none" } },
            { "trait_bound": { "trait": { "path": "Sized", "args": null }, "modifier": "maybe" } },
            { "outlives": "'static" },
        ] });
        assert_eq!(ty(&of), "impl Fn(u8) -> bool + ?Sized + 'static");
    }
}

//! The four `format`s of the protocol, each by its RFC.

mod date;
mod email;
mod uri;

pub(crate) use self::{
    date::{is_date, is_date_time},
    email::is_email,
    uri::is_uri,
};

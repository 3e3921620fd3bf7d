//! `smp-server init`: a new identity, its certificates and an INI file. It never touches an installation that is there.

use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::certificates::{self, Credential, MAX_COMMON_NAME, to_base64};
use super::console::Console;
use super::error::CommandError;
use super::files::{Access, NewFiles};
use super::identity::address;
use super::options::{InitOptions, parse_uri};
use super::template;
use crate::protocol::certificate::Fingerprint;
use crate::protocol::crypto::random_array;
use crate::settings::keys::{self, Key};
use crate::settings::{ALLOWED_PASSWORD, Password, Paths};
use crate::store::postgres::connect::SchemaName;

/// Random bytes of a password that nobody chose.
const PASSWORD_BYTES: usize = 32;
/// Random bytes of a password for the control port.
const CONTROL_PASSWORD_BYTES: usize = 18;
/// Stands for the host name in the INI file and address until the operator puts it in.
const UNKNOWN_HOST: &str = "<hostnames>";

/// Initializes a server, after asking what `options` leave open, unless they say that nothing is to be asked.
pub fn init(paths: &Paths, mut options: InitOptions, console: &mut Console<'_>) -> Result<(), CommandError> {
    refuse_existing(paths)?;
    check_options(&options)?;
    if !options.yes && !ask(paths, &mut options, console)? {
        return Err(CommandError::refused("the server was NOT initialized (use `-y` to be asked nothing)"));
    }
    let common_name = options.fqdn.as_ref().unwrap_or(&options.ip);
    check_common_name(common_name)?;
    let password = choose_password(&options);
    let authority = Credential::new_authority(options.sign_algorithm)?;
    let server = authority.issue_server(options.sign_algorithm, common_name)?;
    let fingerprint = certificates::fingerprint(&authority.certificate)?;
    let ini = Zeroizing::new(template::fill(template::SHIPPED, &ini_values(&options, password.as_ref()))?);
    for directory in [&paths.config, &paths.log] {
        std::fs::create_dir_all(directory).map_err(CommandError::file("create directory", directory))?;
    }
    let mut files = NewFiles::default();
    write_credentials(&mut files, paths, &authority, &server)?;
    files.create(&paths.fingerprint(), format!("{}\n", to_base64(&fingerprint.0)).as_bytes(), Access::Public)?;
    files.create(&paths.ini(), ini.as_bytes(), Access::Private)?;
    files.keep();
    report(paths, &options, &address(fingerprint, host(&options), password.as_ref()), fingerprint, console)
}

/// Whatever of an installation is there stops `init`: a lost authority key or store cannot be made again.
fn refuse_existing(paths: &Paths) -> Result<(), CommandError> {
    let ini = paths.ini();
    if ini.exists() {
        return Err(CommandError::refused(format!(
            "the server is already initialized ({} exists).\nRun `smp-server start`, or `smp-server delete` to begin anew.",
            ini.display()
        )));
    }
    let mut parts = vec![paths.ca_key(), paths.ca_certificate(), paths.server_key(), paths.server_certificate()];
    parts.extend([paths.fingerprint(), paths.store()]);
    parts.extend(paths.foreign_stores());
    let Some(path) = parts.iter().find(|path| path.exists()) else { return Ok(()) };
    Err(CommandError::refused(format!(
        "{} belongs to a server that was initialized before.\n\
         Put its other files back beside it, or move it away to initialize a new server.",
        path.display()
    )))
}

fn check_options(options: &InitOptions) -> Result<(), CommandError> {
    let information = &options.information;
    let text = if information.any() && options.source_code.is_none() {
        "information about the server also needs --source-code"
    } else if information.operator_country.is_some() && information.operator.is_none() {
        "--operator-country also needs --operator"
    } else if information.hosting_country.is_some() && information.hosting.is_none() {
        "--hosting-country also needs --hosting"
    } else {
        return Ok(());
    };
    Err(CommandError::refused(text))
}

/// Refuses what cannot be the common name of a certificate.
pub fn check_common_name(name: &str) -> Result<(), CommandError> {
    let characters = name.chars().count();
    if (1..=MAX_COMMON_NAME).contains(&characters) && !name.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Ok(());
    }
    Err(CommandError::refused(format!(
        "`{}` cannot be a host name: it must have 1 to {MAX_COMMON_NAME} characters and no spaces",
        name.escape_debug()
    )))
}

/// Asks for everything; whether the operator went on to the end.
fn ask(paths: &Paths, options: &mut InitOptions, console: &mut Console<'_>) -> Result<bool, CommandError> {
    console.say("Use `smp-server init -h` for available options.")?;
    Ok(ask_all(paths, options, console)?.is_some())
}

fn ask_all(paths: &Paths, options: &mut InitOptions, console: &mut Console<'_>) -> Result<Option<()>, CommandError> {
    if console.ask("SMP server will be initialized (press Enter)")?.is_none() {
        return Ok(None);
    }
    let question = "Keep queues and messages on disk, so that they survive a restart";
    let Some(store) = console.yes_or_no(question, true)? else { return Ok(None) };
    let Some(statistics) = console.yes_or_no("Enable logging daily statistics", false)? else { return Ok(None) };
    (options.disable_store_log, options.daily_stats) = (!store, statistics);
    if ask_password(options, console)?.is_none() {
        return Ok(None);
    }
    let current = options.fqdn.as_ref().unwrap_or(&options.ip);
    let question = format!("Enter server FQDN or IP address for certificate ({current}): ");
    let Some(host) = console.ask(question)? else { return Ok(None) };
    if !host.is_empty() {
        options.fqdn = Some(host);
    }
    if ask_source_code(options, console)?.is_none() {
        return Ok(None);
    }
    let current = options.web_path.clone().unwrap_or_else(|| default_web_path(paths));
    let question = format!("Enter path to store generated server pages ({}): ", current.display());
    let Some(path) = console.ask(question)? else { return Ok(None) };
    if !path.is_empty() {
        options.web_path = Some(PathBuf::from(path));
    }
    Ok(Some(()))
}

fn ask_password(options: &mut InitOptions, console: &mut Console<'_>) -> Result<Option<()>, CommandError> {
    console.say("Require a password to create new messaging queues?")?;
    let question = "'r' for random (default), 'n' - no password (for public servers), or enter password: ";
    loop {
        let Some(answer) = console.ask(question)?.map(Zeroizing::new) else { return Ok(None) };
        (options.no_password, options.password) = match answer.as_str() {
            "" | "r" => (false, None),
            "n" => (true, None),
            text => match Password::new(text) {
                Some(password) => (false, Some(password)),
                None => {
                    console.say(format_args!("Invalid password. Allowed: {ALLOWED_PASSWORD}."))?;
                    continue;
                }
            },
        };
        return Ok(Some(()));
    }
}

fn ask_source_code(options: &mut InitOptions, console: &mut Console<'_>) -> Result<Option<()>, CommandError> {
    let current = options.source_code.take();
    let shown = current.as_deref().unwrap_or("none, though the licence asks for it").to_owned();
    loop {
        let Some(answer) = console.ask(format_args!("Enter server source code URI ({shown}): "))? else {
            return Ok(None);
        };
        match if answer.is_empty() { Ok(current.clone()) } else { parse_uri(&answer).map(Some) } {
            Ok(uri) => {
                options.source_code = uri;
                return Ok(Some(()));
            }
            Err(why) => console.say(format_args!("Invalid source code URI: {why}."))?,
        }
    }
}

fn choose_password(options: &InitOptions) -> Option<Password> {
    if options.no_password {
        return None;
    }
    options.password.clone().or_else(|| Password::new(&random_base64::<PASSWORD_BYTES>()))
}

fn random_base64<const BYTES: usize>() -> Zeroizing<String> {
    let bytes = Zeroizing::new(random_array::<BYTES>());
    Zeroizing::new(to_base64(bytes.as_slice()))
}

fn write_credentials(
    files: &mut NewFiles,
    paths: &Paths,
    authority: &Credential,
    server: &Credential,
) -> Result<(), CommandError> {
    let parts =
        [(authority, paths.ca_key(), paths.ca_certificate()), (server, paths.server_key(), paths.server_certificate())];
    for (credential, key, certificate) in parts {
        let pem = Zeroizing::new(credential.key.private_key_to_pem_pkcs8()?);
        files.create(&key, &pem, Access::Private)?;
        files.create(&certificate, &credential.certificate.to_pem()?, Access::Public)?;
    }
    Ok(())
}

fn host(options: &InitOptions) -> &str {
    let ip = Some(options.ip.as_str()).filter(|ip| *ip != "127.0.0.1");
    options.fqdn.as_deref().or(ip).unwrap_or(UNKNOWN_HOST)
}

fn default_web_path(paths: &Paths) -> PathBuf {
    paths.log.join("www")
}

/// What differs from the shipped file.
fn ini_values(options: &InitOptions, password: Option<&Password>) -> Vec<(&'static Key, String)> {
    let on_off = |on: bool| Some(if on { "on" } else { "off" }.to_owned());
    let store = on_off(!options.disable_store_log);
    let path = |path: &Path| path.display().to_string();
    let domains = (!options.own_domains.is_empty()).then(|| options.own_domains.join(" "));
    let mut values = information_values(options);
    values.extend([
        (&keys::STORE_ENABLE, store.clone()),
        (&keys::RESTORE_MESSAGES, store),
        (&keys::DB_CONNECTION, options.database.connection.as_ref().map(|connection| connection.reveal().to_owned())),
        (&keys::DB_SCHEMA, options.database.schema.as_ref().map(SchemaName::to_string)),
        (&keys::DB_POOL_SIZE, options.database.pool_size.map(|size| size.to_string())),
        (&keys::LOG_STATS, on_off(options.daily_stats)),
        (&keys::CREATE_PASSWORD, password.map(|password| password.reveal().to_owned())),
        (&keys::HOST, Some(host(options).to_owned())),
        (&keys::CONTROL_PORT, options.control_port.map(|port| port.to_string())),
        (&keys::OWN_SERVER_DOMAINS, domains),
        (&keys::SOCKS_PROXY, options.socks_proxy.clone()),
        (&keys::STATIC_PATH, options.web_path.as_deref().filter(|_| !options.disable_web).map(path)),
    ]);
    if options.control_port.is_some() {
        for key in [&keys::CONTROL_PORT_ADMIN_PASSWORD, &keys::CONTROL_PORT_USER_PASSWORD] {
            values.push((key, Some(random_base64::<CONTROL_PASSWORD_BYTES>().to_string())));
        }
    }
    values.into_iter().filter_map(|(key, value)| value.map(|value| (key, value))).collect()
}

fn information_values(options: &InitOptions) -> Vec<(&'static Key, Option<String>)> {
    let information = &options.information;
    vec![
        (&keys::SOURCE_CODE, options.source_code.clone()),
        (&keys::SERVER_COUNTRY, information.server_country.clone()),
        (&keys::OPERATOR, information.operator.clone()),
        (&keys::OPERATOR_COUNTRY, information.operator_country.clone()),
        (&keys::WEBSITE, information.operator_website.clone()),
        (&keys::HOSTING, information.hosting.clone()),
        (&keys::HOSTING_COUNTRY, information.hosting_country.clone()),
        (&keys::HOSTING_TYPE, information.hosting_type.map(|kind| kind.as_str().to_owned())),
    ]
}

fn report(
    paths: &Paths,
    options: &InitOptions,
    address: &str,
    fingerprint: Fingerprint,
    console: &mut Console<'_>,
) -> Result<(), CommandError> {
    console.say(format_args!("Server initialized, please add information about it in {}.", paths.ini().display()))?;
    console.say("Run `smp-server start` to start server.")?;
    warn_about_authority_key(paths, console)?;
    console.say(super::VERSION)?;
    console.say(format_args!("Fingerprint: {}", to_base64(&fingerprint.0)))?;
    console.say(format_args!("Server address: {address}"))?;
    super::say_source_code(options.source_code.as_deref(), console)
}

/// Tells what the key of the authority is good for and where it is.
pub fn warn_about_authority_key(paths: &Paths, console: &mut Console<'_>) -> Result<(), CommandError> {
    console.say(format_args!(
        "----------\n\
         Move the private key of the certificate authority to a safe place and delete it from this machine.\n\
         Whoever has it can pretend to be this server; you need it only for `smp-server cert`.\n\
         It is in {}\n\
         ----------",
        paths.ca_key().display()
    ))?;
    Ok(())
}

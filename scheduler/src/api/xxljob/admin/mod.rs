//! What portals and scripts call at xxl-job's admin: its forms (2.x and 3.x), and the JSON of portals that were built for 2.2.0.
//!
//! An adapter and nothing more. Whoever calls it shows an API token, or a session; the tenant is the token's, and what may be done,
//! what is checked, bounded and recorded is what `/api/v1` says, whose functions are called here. Job and group ids are numbers
//! within the tenant.

mod asked;
mod children;
mod edits;
mod groups;
mod jobs;
mod paging;
mod reply;
mod runs;
mod sign_in;
mod starts;
mod visitor;

use crate::api::Api;
use crate::api::client_address::client_address;
use crate::api::guard::refuse_foreign;
use crate::api::problem::Problem;
use actix_web::http::Method;
use actix_web::{HttpRequest, HttpResponse, web};
use asked::Asked;
use paging::Pages;
use reply::{Dialect, Refused, Reply};
use visitor::{Unknown, Visitor};

/// What is done at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Endpoint {
    /// Apps, as the portals' list.
    ListGroups,
    /// Apps, as the forms' page.
    PageGroups,
    /// An app.
    ShowGroup,
    /// Tasks, as the portals' list.
    ListJobs,
    /// Tasks, as the forms' page.
    PageJobs,
    /// Runs.
    PageRuns,
    /// The next fires of a schedule.
    NextFires,
    /// A new task.
    Add,
    /// Another definition.
    Update,
    /// Another version of a script.
    SaveScript,
    /// No task any more.
    Remove,
    /// It fires by itself.
    Start,
    /// It does not.
    Stop,
    /// It runs once.
    Trigger,
    /// It is not served, and this says where that is done.
    Elsewhere(&'static str),
}

const APPS: &str = "apps are made, described and deleted in the console, or by `carillon apps`: they have keys, too";
const USERS: &str = "users, their roles and passwords are managed in the console, or by `carillon users`";
const RUNS: &str = "cancel a run, read its log and its retention in the console, or by `carillon logs`";
const CHARTS: &str = "statistics are in the console, under /metrics, and by `carillon statistics`";

/// Every path, with the envelope of its replies where only one of the two has the path.
const ENDPOINTS: [(&str, Endpoint, Option<Dialect>); 40] = [
    ("/jobgroup/list", Endpoint::ListGroups, Some(Dialect::Content)),
    ("/jobgroup/pageList", Endpoint::PageGroups, None),
    ("/jobgroup/loadById", Endpoint::ShowGroup, None),
    ("/jobgroup/save", Endpoint::Elsewhere(APPS), Some(Dialect::Content)),
    ("/jobgroup/insert", Endpoint::Elsewhere(APPS), Some(Dialect::Data)),
    ("/jobgroup/update", Endpoint::Elsewhere(APPS), None),
    ("/jobgroup/remove", Endpoint::Elsewhere(APPS), Some(Dialect::Content)),
    ("/jobgroup/delete", Endpoint::Elsewhere(APPS), Some(Dialect::Data)),
    ("/jobinfo/list", Endpoint::ListJobs, Some(Dialect::Content)),
    ("/jobinfo/pageList", Endpoint::PageJobs, None),
    ("/jobinfo/add", Endpoint::Add, Some(Dialect::Content)),
    ("/jobinfo/insert", Endpoint::Add, Some(Dialect::Data)),
    ("/jobinfo/update", Endpoint::Update, None),
    ("/jobinfo/remove", Endpoint::Remove, Some(Dialect::Content)),
    ("/jobinfo/delete", Endpoint::Remove, Some(Dialect::Data)),
    ("/jobinfo/start", Endpoint::Start, None),
    ("/jobinfo/stop", Endpoint::Stop, None),
    ("/jobinfo/trigger", Endpoint::Trigger, None),
    ("/jobinfo/nextTriggerTime", Endpoint::NextFires, None),
    ("/joblog/pageList", Endpoint::PageRuns, None),
    ("/joblog/getJobsByGroup", Endpoint::Elsewhere("use /jobinfo/pageList"), Some(Dialect::Content)),
    ("/joblog/logDetailCat", Endpoint::Elsewhere(RUNS), None),
    ("/joblog/logKill", Endpoint::Elsewhere(RUNS), None),
    ("/joblog/clearLog", Endpoint::Elsewhere(RUNS), None),
    ("/jobcode/save", Endpoint::SaveScript, None),
    ("/user/pageList", Endpoint::Elsewhere(USERS), None),
    ("/user/add", Endpoint::Elsewhere(USERS), Some(Dialect::Content)),
    ("/user/insert", Endpoint::Elsewhere(USERS), Some(Dialect::Data)),
    ("/user/update", Endpoint::Elsewhere(USERS), None),
    ("/user/remove", Endpoint::Elsewhere(USERS), Some(Dialect::Content)),
    ("/user/delete", Endpoint::Elsewhere(USERS), Some(Dialect::Data)),
    ("/user/updatePwd", Endpoint::Elsewhere(USERS), Some(Dialect::Content)),
    ("/auth/updatePwd", Endpoint::Elsewhere(USERS), Some(Dialect::Data)),
    ("/chartInfo", Endpoint::Elsewhere(CHARTS), None),
    ("/api/addJob", Endpoint::Elsewhere("use /jobinfo/insert"), Some(Dialect::Data)),
    ("/api/updateJob", Endpoint::Elsewhere("use /jobinfo/update"), Some(Dialect::Data)),
    ("/api/removeJob", Endpoint::Elsewhere("use /jobinfo/delete"), Some(Dialect::Data)),
    ("/api/startJob", Endpoint::Elsewhere("use /jobinfo/start"), Some(Dialect::Data)),
    ("/api/stopJob", Endpoint::Elsewhere("use /jobinfo/stop"), Some(Dialect::Data)),
    ("/api/triggerJob", Endpoint::Elsewhere("use /jobinfo/trigger"), Some(Dialect::Data)),
];

impl Endpoint {
    /// Whether it only looks: such a request may be a `GET`.
    fn only_looks(self) -> bool {
        match self {
            Self::ListGroups
            | Self::PageGroups
            | Self::ShowGroup
            | Self::ListJobs
            | Self::PageJobs
            | Self::PageRuns
            | Self::NextFires
            | Self::Elsewhere(_) => true,
            Self::Add | Self::Update | Self::SaveScript | Self::Remove | Self::Start | Self::Stop | Self::Trigger => {
                false
            }
        }
    }

    async fn serve(self, api: &Api, visitor: &Visitor, asked: &Asked, dialect: Dialect) -> Result<Reply, Refused> {
        let pages = |of_forms: bool| match (of_forms, dialect) {
            (false, _) => Pages::Numbered,
            (true, Dialect::Content) => Pages::Length,
            (true, Dialect::Data) => Pages::Offset,
        };
        match self {
            Self::ListGroups => groups::list(api, visitor, asked, pages(false)).await,
            Self::PageGroups => groups::list(api, visitor, asked, pages(true)).await,
            Self::ShowGroup => groups::show(api, visitor, asked).await,
            Self::ListJobs => jobs::list(api, visitor, asked, pages(false)).await,
            Self::PageJobs => jobs::list(api, visitor, asked, pages(true)).await,
            Self::PageRuns => runs::list(api, visitor, asked, pages(true)).await,
            Self::NextFires => starts::next_fires(api, visitor, asked).await,
            Self::Add => edits::add(api, visitor, asked).await,
            Self::Update => edits::update(api, visitor, asked).await,
            Self::SaveScript => edits::save_script(api, visitor, asked).await,
            Self::Remove => edits::remove(api, visitor, asked).await,
            Self::Start => starts::start(api, visitor, asked).await,
            Self::Stop => starts::stop(api, visitor, asked).await,
            Self::Trigger => starts::trigger(api, visitor, asked).await,
            Self::Elsewhere(where_it_is) => Err(Refused::new(format!("not served: {where_it_is}"))),
        }
    }
}

/// The routes below one of the two paths that clients may have been given.
pub fn routes(config: &mut web::ServiceConfig, context: &str) {
    for (path, endpoint, dialect) in ENDPOINTS {
        let answer = move |request: HttpRequest, payload: web::Payload, api: web::Data<Api>| async move {
            answer(endpoint, dialect, &request, payload, &api).await
        };
        config.route(&format!("{context}{path}"), web::route().to(answer));
    }
    for (path, dialect) in sign_in::PATHS {
        let sign_in = move |request: HttpRequest, payload: web::Payload, api: web::Data<Api>| async move {
            enter(dialect, &request, payload, &api).await
        };
        config.route(&format!("{context}{path}"), web::post().to(sign_in));
    }
    for (path, dialect) in sign_in::PATHS_OUT {
        let sign_out =
            move |request: HttpRequest, api: web::Data<Api>| async move { leave(dialect, &request, &api).await };
        config.route(&format!("{context}{path}"), web::post().to(sign_out));
    }
}

async fn answer(
    endpoint: Endpoint,
    dialect: Option<Dialect>,
    request: &HttpRequest,
    payload: web::Payload,
    api: &Api,
) -> HttpResponse {
    let mut known = dialect.unwrap_or(Dialect::Content);
    let visitor = match Visitor::identify(api, request).await {
        Ok(visitor) => visitor,
        Err(unknown) => return unknown.respond(known),
    };
    let served = async {
        let looks = [Method::GET, Method::HEAD].contains(request.method());
        if !(request.method() == Method::POST || (looks && endpoint.only_looks())) {
            return Err(Refused::new(format!("{} is not allowed here: send it as POST", request.method())));
        }
        visitor.may_ask(request)?;
        let asked = Asked::read(request, payload).await?;
        known = dialect.unwrap_or_else(|| asked.dialect());
        endpoint.serve(api, &visitor, &asked, known).await
    };
    match served.await {
        Ok(reply) => reply.respond(known),
        Err(refused) => refused.respond(known),
    }
}

/// Signs in with name and password.
async fn enter(dialect: Dialect, request: &HttpRequest, payload: web::Payload, api: &Api) -> HttpResponse {
    let address = client_address(api, request);
    if let Err(wait) = api.rates.addresses.admit_address(&address) {
        return Unknown(Problem::too_many(wait)).respond(dialect);
    }
    let entered = async {
        refuse_foreign(request)?;
        let asked = Asked::read(request, payload).await?;
        sign_in::sign_in(api, request, &asked).await
    };
    match entered.await {
        Ok(token) => Reply::done().with_cookie(sign_in::cookie(api, dialect, token)).respond(dialect),
        Err(refused) => refused.respond(dialect),
    }
}

/// Ends the session.
async fn leave(dialect: Dialect, request: &HttpRequest, api: &Api) -> HttpResponse {
    let visitor = match Visitor::identify(api, request).await {
        Ok(visitor) => visitor,
        Err(unknown) => return unknown.respond(dialect),
    };
    let left = async {
        visitor.may_ask(request)?;
        sign_in::sign_out(api, &visitor).await
    };
    match left.await {
        Ok(()) => Reply::done().with_cookie(sign_in::no_cookie(api, dialect)).respond(dialect),
        Err(refused) => refused.respond(dialect),
    }
}

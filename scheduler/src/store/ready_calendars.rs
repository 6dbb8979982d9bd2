//! Calendars as schedules use them, kept so that none is read from JSON twice.

use crate::domain::TenantId;
use crate::domain::calendar::Calendar;
use dashmap::DashMap;
use std::sync::Arc;

/// A calendar's place: tenant id and name.
pub type CalendarKey = (TenantId, String);

/// Calendars made ready, by place; the version tells whether they still are.
pub type ReadyCalendars = Arc<DashMap<CalendarKey, Arc<Calendar>>>;

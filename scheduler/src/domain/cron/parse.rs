//! From the text of an expression to bit sets.
//!
//! The reading is Quartz's, with one difference: where Quartz silently drops a part of what was written
//! (`1-5W` means `1W` to it, `MON,WED#2` means `MON#2`, `MON-FRI/2` means `MON-FRI`, `5x` means `5`), the
//! expression is refused, because what would run is not what its author meant.

use super::{CronError, CronSchedule, Days, FIRST_YEAR, Field, Reason};

const MONTHS: [&str; 12] = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// The bit of Saturday, which is what a lone `L` in the day-of-week field means.
const SATURDAY: u64 = 1 << 7;

/// The largest n in `L-n`.
const MOST_BACK: u32 = 30;

impl CronSchedule {
    /// Parses `second minute hour day-of-month month day-of-week [year]`, separated by blanks.
    ///
    /// | field | values | besides `*` `,` `-` `/` |
    /// |---|---|---|
    /// | second, minute | 0-59 | |
    /// | hour | 0-23 | |
    /// | day of month | 1-31 | `?`, `L`, `L-n` (n <= 30), `LW`, `L-nW`, `nW` |
    /// | month | 1-12, JAN-DEC | |
    /// | day of week | 1-7, SUN-SAT (1 is Sunday) | `?`, `L` (is 7), `dL` (the last d), `d#n` (n = 1-5) |
    /// | year, optional | 1970-2199 | |
    ///
    /// Exactly one of the two day fields must be `?`. Letters count in either case. A range whose end is
    /// smaller than its start wraps (`FRI-MON`, `22-2`), except for years. `a/n` runs from a to the end of
    /// the field. A month without the day that is named (`31W` in April, `L-30` in February) has no fire.
    ///
    /// # Errors
    ///
    /// [`CronError`] names the field and the column that are wrong and what would be allowed.
    pub fn parse(expression: &str) -> Result<Self, CronError> {
        let [second, minute, hour, day, month, week, year] = split(expression)?;
        let seconds = second.values()?;
        let minutes = minute.values()?;
        let hours = hour.values()?;
        let by_month = day.days_of_month()?;
        let months = month.values()?;
        let by_week = week.days_of_week()?;
        let years = year.values()?;
        let days = match (by_month, by_week) {
            (Some(days), None) | (None, Some(days)) => days,
            (Some(_), Some(_)) => return Err(week.error(Reason::BothDays)),
            (None, None) => return Err(week.error(Reason::NoDays)),
        };
        Ok(Self {
            seconds: seconds.bits[0],
            minutes: minutes.bits[0],
            hours: hours.bits[0],
            months: narrow(months.bits[0]),
            years: years.bits,
            days,
            fixed: !(seconds.repeats || minutes.repeats || hours.repeats),
        })
    }
}

/// A part of the expression that is being read, and the field it belongs to.
#[derive(Clone, Copy)]
struct Cursor<'a> {
    expression: &'a str,
    field: Field,
    /// Byte offsets of what is left to read.
    at: usize,
    end: usize,
}

/// Cuts an expression into its fields; a missing year is read as `*`.
fn split(expression: &str) -> Result<[Cursor<'_>; 7], CronError> {
    let mut fields = Field::ALL.map(|field| Cursor { expression: "*", field, at: 0, end: 1 });
    let mut count = 0;
    let mut from = 0;
    while let Some(blanks) = expression[from..].find(|c: char| !c.is_ascii_whitespace()) {
        let at = from + blanks;
        let end =
            expression[at..].find(|c: char| c.is_ascii_whitespace()).map_or(expression.len(), |length| at + length);
        let field = *Field::ALL.get(count).unwrap_or(&Field::Year);
        let cursor = Cursor { expression, field, at, end };
        *fields.get_mut(count).ok_or_else(|| cursor.error(Reason::TooManyFields))? = cursor;
        count += 1;
        from = end;
    }
    if count < 6 {
        let missing = Cursor { expression, field: Field::ALL[count], at: expression.len(), end: expression.len() };
        return Err(missing.error(Reason::TooFewFields(count)));
    }
    Ok(fields)
}

/// The values one field allows.
#[derive(Default)]
struct Values {
    /// Bit n stands for value n, in the year field for [`FIRST_YEAR`] + n.
    bits: [u64; 4],
    /// Whether the field repeats instead of listing its values; see the text of the cron module.
    repeats: bool,
}

impl Values {
    fn insert(&mut self, bit: u32) {
        self.bits[bit as usize / 64] |= 1 << (bit % 64);
    }

    fn count(&self) -> u32 {
        self.bits.iter().map(|word| word.count_ones()).sum()
    }
}

/// A set of few values as the smaller integer it is known to fit.
fn narrow<T: TryFrom<u64> + Default>(bits: u64) -> T {
    T::try_from(bits).unwrap_or_default()
}

impl Cursor<'_> {
    fn error(&self, reason: Reason) -> CronError {
        CronError { field: self.field, column: self.expression[..self.at].chars().count() + 1, reason }
    }

    /// The error for whatever comes next, if it cannot come next.
    fn unexpected(&self) -> CronError {
        let day = matches!(self.field, Field::DayOfMonth | Field::DayOfWeek);
        self.error(match self.peek() {
            None => Reason::Missing,
            Some('?' | 'L' | 'W' | '#') if day => Reason::NotAlone,
            Some(_) => Reason::Unexpected(self.expression[self.at..].chars().next().unwrap_or(' ')),
        })
    }

    /// The next character in upper case.
    fn peek(&self) -> Option<char> {
        let next = self.expression[self.at..self.end].chars().next()?;
        Some(next.to_ascii_uppercase())
    }

    /// Steps over `wanted` if it comes next.
    fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    /// `done` if nothing is left in the field.
    fn finish<T>(&self, done: T) -> Result<T, CronError> {
        match self.peek() {
            None => Ok(done),
            Some(',' | '-' | '/') => Err(self.error(Reason::NotAlone)),
            Some(_) => Err(self.unexpected()),
        }
    }

    /// The day-of-month field; `None` for `?`.
    fn days_of_month(mut self) -> Result<Option<Days>, CronError> {
        if self.eat('?') {
            return self.finish(None);
        }
        if self.eat('L') {
            let back = if self.eat('-') { self.number(0, MOST_BACK)? } else { 0 };
            let back = narrow(back.into());
            return if self.eat('W') {
                self.finish(Some(Days::LastWorking { back }))
            } else {
                self.finish(Some(Days::Last { back }))
            };
        }
        let mut single = self;
        if let Ok(day) = single.value()
            && single.eat('W')
        {
            return single.finish(Some(Days::NearestWorking(narrow(day.into()))));
        }
        Ok(Some(Days::OfMonth(narrow(self.values()?.bits[0]))))
    }

    /// The day-of-week field; `None` for `?`.
    fn days_of_week(mut self) -> Result<Option<Days>, CronError> {
        if self.eat('?') {
            return self.finish(None);
        }
        if self.eat('L') {
            return self.finish(Some(Days::OfWeek(narrow(SATURDAY))));
        }
        let mut single = self;
        if let Ok(day) = single.value() {
            let day = narrow(day.into());
            if single.eat('L') {
                return single.finish(Some(Days::LastOfWeek(day)));
            }
            if single.eat('#') {
                let nth = narrow(single.number(1, 5)?.into());
                return single.finish(Some(Days::NthOfWeek { day, nth }));
            }
        }
        Ok(Some(Days::OfWeek(narrow(self.values()?.bits[0]))))
    }

    /// A list of values, ranges and steps.
    fn values(mut self) -> Result<Values, CronError> {
        let mut values = Values::default();
        loop {
            self.element(&mut values)?;
            if self.peek().is_none() {
                break;
            }
            if !self.eat(',') {
                return Err(self.unexpected());
            }
        }
        let (min, max) = self.field.range();
        let count = values.count();
        values.repeats = count > 1 && (values.repeats || count == max - min + 1);
        Ok(values)
    }

    /// One element of a list: `*`, `*/n`, `/n`, `a`, `a/n`, `a-b` or `a-b/n`.
    fn element(&mut self, values: &mut Values) -> Result<(), CronError> {
        let (min, max) = self.field.range();
        let (first, last, named) = if self.eat('*') || self.peek() == Some('/') {
            values.repeats = true;
            (min, Some(max), false)
        } else {
            let named = self.is_name();
            let first = self.value()?;
            (first, self.range_end(first, named)?, named)
        };
        let slash = *self;
        let step = self.step()?;
        if named && step.is_some() {
            return Err(slash.error(Reason::StepAfterName));
        }
        values.repeats |= step.is_some() || last.is_some();
        let last = last.unwrap_or(if step.is_some() { max } else { first });
        for value in (first..=last).step_by(step.unwrap_or(1) as usize) {
            values.insert(self.bit((value - min) % (max - min + 1) + min));
        }
        Ok(())
    }

    /// The b of `a-b`, if there is one; made larger by the size of the field if the range wraps.
    fn range_end(&mut self, first: u32, named: bool) -> Result<Option<u32>, CronError> {
        let before = *self;
        if !self.eat('-') {
            return Ok(None);
        }
        if self.peek().is_some() && self.is_name() != named {
            return Err(self.error(Reason::MixedRange));
        }
        let last = self.value()?;
        if last >= first {
            return Ok(Some(last));
        }
        if self.field == Field::Year {
            return Err(before.error(Reason::YearsReversed));
        }
        let (min, max) = self.field.range();
        Ok(Some(last + max - min + 1))
    }

    /// The n of `/n`, if there is one.
    fn step(&mut self) -> Result<Option<u32>, CronError> {
        if !self.eat('/') {
            return Ok(None);
        }
        let (min, max) = self.field.range();
        // Quartz allows a step of 31 days, 12 months and 7 weekdays, but not of 60 seconds or 24 hours.
        let most = if min == 0 { max } else { max - min + 1 };
        let before = *self;
        match self.digits()? {
            step if (1..=most).contains(&step) => Ok(Some(step)),
            step => Err(before.error(Reason::Step(step, most))),
        }
    }

    fn is_name(&self) -> bool {
        self.peek().is_some_and(|c| c.is_ascii_uppercase())
    }

    /// A value of this field, by number or by name.
    fn value(&mut self) -> Result<u32, CronError> {
        let (min, max) = self.field.range();
        match self.field {
            Field::Month if self.is_name() => self.name(&MONTHS),
            Field::DayOfWeek if self.is_name() => self.name(&WEEKDAYS),
            _ => self.number(min, max),
        }
    }

    /// One of `names`, counted from 1.
    fn name(&mut self, names: &[&str]) -> Result<u32, CronError> {
        let end = self.end.min(self.at + 3);
        let text = self.expression.get(self.at..end).unwrap_or_default();
        for (number, name) in (1..).zip(names) {
            if name.eq_ignore_ascii_case(text) {
                self.at = end;
                return Ok(number);
            }
        }
        Err(self.error(Reason::UnknownName))
    }

    fn number(&mut self, min: u32, max: u32) -> Result<u32, CronError> {
        let before = *self;
        match self.digits()? {
            number if (min..=max).contains(&number) => Ok(number),
            number => Err(before.error(Reason::OutOfRange(number, min, max))),
        }
    }

    /// Digits as a number; a number too large for its type becomes the largest, which no field allows.
    fn digits(&mut self) -> Result<u32, CronError> {
        let mut number = None;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            let so_far: u32 = number.unwrap_or(0);
            number = Some(so_far.saturating_mul(10).saturating_add(digit));
            self.at += 1;
        }
        number.ok_or_else(|| self.unexpected())
    }

    /// The bit that stands for `value` in this field's set.
    fn bit(&self, value: u32) -> u32 {
        match self.field {
            Field::Year => value - FIRST_YEAR.unsigned_abs(),
            _ => value,
        }
    }
}

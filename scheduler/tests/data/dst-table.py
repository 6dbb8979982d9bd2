#!/usr/bin/env python3
"""Makes dst-table.jsonl: what every daylight-saving policy means at real changes of the clock.

Python's zoneinfo answers (tzdata 2025b, as chrono-tz embeds), and nothing of carillon has a part in it: each minute of
the wall clock around a change is tried; one that no instant shows is in a gap, one that two show is in an overlap. The
end of a gap is the instant at which the offset changes, found by trying every minute of UTC.

    python3 scheduler/tests/data/dst-table.py > scheduler/tests/data/dst-table.jsonl
"""

import json
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

UTC, MINUTE, DAY = timezone.utc, timedelta(minutes=1), timedelta(days=1)

# Zone and the years whose changes are listed.
CHANGES = """
Africa/Cairo 2026; Africa/Casablanca 2026; Africa/El_Aaiun 2025; America/Asuncion 2024; America/Caracas 2007 2016
America/Havana 2026; America/New_York 2026; America/Nuuk 2023 2024; America/Santiago 2026; America/Sao_Paulo 2018
America/Scoresbysund 2024 2025; America/St_Johns 2006 2026; Antarctica/Casey 2023; Antarctica/Troll 2026; Asia/Amman 2021 2022
Asia/Beirut 2026; Asia/Gaza 2026; Asia/Kathmandu 1986; Asia/Pyongyang 2015 2018; Asia/Tehran 2022; Atlantic/Azores 2026
Australia/Lord_Howe 2026; Australia/Sydney 2026; Europe/Dublin 2026; Europe/Istanbul 2016; Europe/London 2026
Europe/Moscow 2011 2014; Europe/Volgograd 2018 2020; Pacific/Apia 2011; Pacific/Chatham 2026; Pacific/Easter 2026
Pacific/Kwajalein 1993; Pacific/Norfolk 2015 2026; Africa/Juba 2021; Africa/Sao_Tome 2018 2019; America/Los_Angeles 2026
""".replace("\n", ";")


def local(zone, instant):
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


def changes(zone, year):
    """The instants of a year at which the offset changes."""
    at, found = datetime(year, 1, 1, tzinfo=UTC), []
    while at.year == year:
        if at.astimezone(zone).utcoffset() != (at + DAY).astimezone(zone).utcoffset():
            minute = at
            while minute.astimezone(zone).utcoffset() == at.astimezone(zone).utcoffset():
                minute += MINUTE
            found.append(minute)
        at += DAY
    return found


def instants(zone, wall):
    """The instants at which the wall clock shows this, in order."""
    both = {wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)}
    return sorted(instant for instant in both if local(zone, instant) == wall)


def fires(zone, change, times, hours_around, gap, overlap):
    """Epoch seconds within so many hours of the change."""
    first, last = change - timedelta(hours=hours_around), change + timedelta(hours=hours_around)
    before, after = local(zone, change - MINUTE) + MINUTE, local(zone, change)
    wall, end, found = local(zone, first) - DAY, local(zone, last) + DAY, set()
    while wall <= end:
        if (wall.hour, wall.minute) in times:
            at = instants(zone, wall)
            if not at and before <= wall < after and gap == "after" and after - before < DAY:
                at = [change]
            if len(at) == 2:
                at = {"first": at[:1], "second": at[1:], "both": at}[overlap]
            found.update(instant for instant in at if first <= instant < last)
        wall += MINUTE
    return sorted(int(instant.timestamp()) for instant in found)


for entry in filter(None, map(str.strip, CHANGES.split(";"))):
    name, *years = entry.split()
    zone = ZoneInfo(name)
    for change in (change for year in years for change in changes(zone, int(year))):
        before, after = local(zone, change - MINUTE) + MINUTE, local(zone, change)
        is_gap = after > before
        # A time of day in the middle of what is left out or doubled, and two patterns that repeat over it.
        middle = min(before, after) + abs(after - before) // 2
        odd = (middle.hour, middle.minute)
        every = {(hour, minute) for hour in range(24) for minute in (0, 20, 40)}
        start = (min(before, after).hour, min(before, after).minute)
        for cron, times, hours, fixed in [
            (f"0 {odd[1]} {odd[0]} * * ?", {odd}, 30, True),
            (f"0 {start[1]} {start[0]} * * ?", {start}, 30, True),
            ("0 0/20 * * * ?", every, 3, False),
        ]:
            auto_gap, auto_overlap = ("after", "first") if fixed else ("skip", "both")
            row = {"zone": name, "change": int(change.timestamp()), "hours": hours, "cron": cron}
            if is_gap:
                for gap in ("auto", "skip", "after"):
                    row[f"gap_{gap}"] = fires(zone, change, times, hours, auto_gap if gap == "auto" else gap, "both")
            else:
                for overlap in ("auto", "first", "second", "both"):
                    chosen = auto_overlap if overlap == "auto" else overlap
                    row[f"overlap_{overlap}"] = fires(zone, change, times, hours, "skip", chosen)
            for key, instants_of in row.items():
                if key.startswith(("gap_", "overlap_")):
                    row[key] = [at - row["change"] for at in instants_of]  # seconds from the change: short
            print(json.dumps(row, separators=(",", ":")))

/** Instants and spans as people read them. Everything in the API is epoch milliseconds. */

/** The viewer's own IANA time zone. */
export function viewerZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** How exactly an instant is shown. */
export type Exactness = "minute" | "second" | "millisecond";

const formats = new Map<string, Intl.DateTimeFormat>();

function format(zone: string): Intl.DateTimeFormat {
  let made = formats.get(zone);
  if (made === undefined) {
    made = new Intl.DateTimeFormat("en-CA", {
      timeZone: zone,
      hourCycle: "h23",
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
      fractionalSecondDigits: 3,
    });
    formats.set(zone, made);
  }
  return made;
}

/** `2026-01-31 09:00:00` in that zone; the same in every language, so that it can be compared and searched. */
export function instant(at: number, zone: string, exactness: Exactness = "second"): string {
  const parts = new Map(format(zone).formatToParts(at).map((part) => [part.type, part.value]));
  const part = (type: Intl.DateTimeFormatPartTypes) => parts.get(type) ?? "";
  const minute = `${part("year")}-${part("month")}-${part("day")} ${part("hour")}:${part("minute")}`;
  if (exactness === "minute") return minute;
  const second = `${minute}:${part("second")}`;
  return exactness === "second" ? second : `${second}.${part("fractionalSecond")}`;
}

/** `+08:00`, the offset of a zone at an instant. */
export function offset(at: number, zone: string): string {
  const name = new Intl.DateTimeFormat("en-US", { timeZone: zone, timeZoneName: "longOffset" })
    .formatToParts(at)
    .find((part) => part.type === "timeZoneName")?.value;
  return name === undefined || name === "GMT" ? "+00:00" : name.replace("GMT", "");
}

const UNITS: readonly [name: "d" | "h" | "min" | "s", ms: number][] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1_000],
];

/** `4 ms`, `1.25 s`, `3 min 20 s`, `2 d 4 h`: at most two units; SI symbols, which every language reads. */
export function span(ms: number): string {
  const length = Math.abs(ms);
  if (length < 1_000) return `${Math.round(ms)} ms`;
  const sign = ms < 0 ? "-" : "";
  if (length < 60_000) return `${sign}${Number((length / 1_000).toFixed(length < 10_000 ? 2 : 1))} s`;
  const first = UNITS.findIndex(([, unit]) => length >= unit);
  const shown: string[] = [];
  let rest = length;
  for (const [name, unit] of UNITS.slice(first, first + 2)) {
    const count = Math.floor(rest / unit);
    rest -= count * unit;
    if (count > 0) shown.push(`${count} ${name}`);
  }
  return sign + shown.join(" ");
}

/** The local wall clock `YYYY-MM-DDTHH:mm:ss` of a zone as an instant; the earlier one where there are two. */
export function fromWallClock(text: string, zone: string): number | undefined {
  const naive = Date.parse(`${text}Z`);
  if (Number.isNaN(naive)) return undefined;
  const shifted = (guess: number) => {
    const [sign, hours, minutes] = [offset(guess, zone)[0], offset(guess, zone).slice(1, 3), offset(guess, zone).slice(4, 6)];
    const ms = (Number(hours) * 60 + Number(minutes)) * 60_000;
    return naive - (sign === "-" ? -ms : ms);
  };
  const candidates = [shifted(naive - 86_400_000), shifted(naive + 86_400_000)].sort((a, b) => a - b);
  const wanted = text.replace("T", " ");
  return candidates.find((at) => instant(at, zone) === wanted) ?? candidates[0];
}

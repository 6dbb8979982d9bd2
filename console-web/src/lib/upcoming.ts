/** The coming three minutes: which task fires when, as the logs that are written already say. */
/** Logs are written this far ahead, ms. */
export const AHEAD_MS = 180_000;

/** What was due so long ago is still shown, ms: it has just fired, or is overdue. */
export const BEHIND_MS = 10_000;

/** One fire to come. */
export interface UpcomingFire {
  log: string;
  fire_time: number;
  due_time: number;
  status: string;
  node?: string | null;
}

/** The fires of one task. */
export interface Lane {
  task: string;
  name: string;
  tenant: string;
  /** How many are still to come; `next` may hold fewer of them, and what is overdue. */
  fires: number;
  /** By due time. */
  next: UpcomingFire[];
}

/** What comes. */
export interface Upcoming {
  /** As of when, epoch ms. */
  at: number;
  lanes: Lane[];
  /** How many come due in each second that has any, by its start, epoch ms. */
  seconds: { second: number; fires: number }[];
  /** Tasks that fire, too, and have no lane here. */
  moreTasks: number;
  /** Whether these are all. */
  isComplete: boolean;
}

/** Lanes stay where they are while time passes: by tenant and name, not by what comes next. */
export function inOrder(lanes: Lane[]): Lane[] {
  return lanes.sort((a, b) => a.tenant.localeCompare(b.tenant) || a.name.localeCompare(b.name) || a.task.localeCompare(b.task));
}

/**
 * The fire that lies so many steps (1: the next, -1: the one before) from `at`; the first or last where there is none.
 * Lanes are read again while one looks at them: `at` may have gone meanwhile.
 */
export function stepFrom(fires: readonly UpcomingFire[], at: UpcomingFire | undefined, by: 1 | -1): UpcomingFire | undefined {
  const here = fires.findIndex(({ log }) => log === at?.log);
  const later = fires.findIndex(({ due_time }) => due_time > (at?.due_time ?? 0));
  const after = later === -1 ? fires.length : later;
  const beside = by > 0 ? after : after - 1;
  return fires[Math.min(fires.length - 1, Math.max(0, here === -1 ? beside : here + by))];
}

/** From so many fires on, a lane shows seconds instead of fires. */
export const DENSE = 60;

/** What a lane shows at one place. */
export interface Mark {
  at: number;
  /** Of the first fire there. */
  status: string;
  fires: number;
}

/** The marks of a lane: its fires, or, of many, the seconds that have any. */
export function marksOf(lane: Pick<Lane, "next">): Mark[] {
  if (lane.next.length <= DENSE) return lane.next.map(({ due_time: at, status }) => ({ at, status, fires: 1 }));
  const cells = new Map<number, Mark>();
  for (const { due_time, status } of lane.next) {
    const second = Math.floor(due_time / 1_000) * 1_000;
    const cell = cells.get(second);
    if (cell === undefined) cells.set(second, { at: second, status, fires: 1 });
    else cell.fires += 1;
  }
  return [...cells.values()];
}

/** Where in the lane the fire is that comes due closest to an instant; -1 in an empty lane. */
export function nearest(fires: readonly Pick<UpcomingFire, "due_time">[], at: number): number {
  let best = -1;
  let least = Number.POSITIVE_INFINITY;
  fires.forEach(({ due_time }, index) => {
    const distance = Math.abs(due_time - at);
    if (distance < least) [best, least] = [index, distance];
  });
  return best;
}

/** What is still to come of them, as time passes. */
export function stillToCome(upcoming: Upcoming, now: number): { fires: number; busiest: { second: number; fires: number } | undefined } {
  let fires = 0;
  let busiest: { second: number; fires: number } | undefined;
  for (const each of upcoming.seconds) {
    if (each.second + 1_000 <= now) continue;
    fires += each.fires;
    if (busiest === undefined || each.fires > busiest.fires) busiest = each;
  }
  return { fires, busiest };
}

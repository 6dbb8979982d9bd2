/** The priorities that a run can have, for a `Select`. */
export const PRIORITIES = [9, 8, 7, 6, 5, 4, 3, 2, 1].map((value) => ({ value, label: String(value) }));

/** Where the tasks of a graph of parents and children stand: in layers from left to right. */

export interface Link {
  from: string;
  to: string;
}

/** Where a task stands. */
export interface Scope {
  id: string;
  /** From 0, left to right. */
  layer: number;
  /** From 0, top to bottom within its layer. */
  row: number;
}

/**
 * Puts each task one layer after the last of its parents, and, within a layer, near the middle of
 * its parents. The node allows no cycles; should one come all the same, its tasks stay where they
 * were after as many rounds as there are tasks.
 */
export function layout(ids: readonly string[], links: readonly Link[]): Scope[] {
  const layers = new Map(ids.map((id) => [id, 0]));
  const known = links.filter(({ from, to }) => layers.has(from) && layers.has(to));
  for (let round = 0; round < ids.length; round++) {
    let moved = false;
    for (const { from, to } of known) {
      const wanted = Math.min((layers.get(from) ?? 0) + 1, ids.length - 1);
      if ((layers.get(to) ?? 0) < wanted) {
        layers.set(to, wanted);
        moved = true;
      }
    }
    if (!moved) break;
  }
  const rows = new Map<string, number>();
  const depth = Math.max(0, ...layers.values());
  for (let layer = 0; layer <= depth; layer++) {
    const middle = (id: string) => {
      const parents = known.filter(({ to }) => to === id).map(({ from }) => rows.get(from) ?? 0);
      return parents.length === 0 ? 0 : parents.reduce((sum, row) => sum + row, 0) / parents.length;
    };
    ids
      .filter((id) => layers.get(id) === layer)
      .map((id, index) => ({ id, index, middle: middle(id) }))
      .sort((a, b) => a.middle - b.middle || a.index - b.index)
      .forEach(({ id }, row) => rows.set(id, row));
  }
  return ids.map((id) => ({ id, layer: layers.get(id) ?? 0, row: rows.get(id) ?? 0 }));
}

/** Filters of a page, with the address bar as their only memory: a link shows what its sender saw. */
import { useCallback, useMemo } from "react";
import { useSearchParams } from "react-router";

/** Values of the filters that are set. */
export type Filters<Name extends string> = Partial<Record<Name, string>>;

/** Reads the named filters; what is empty counts as not set. */
export function readFilters<Name extends string>(search: URLSearchParams, names: readonly Name[]): Filters<Name> {
  const filters: Filters<Name> = {};
  for (const name of names) {
    const value = search.get(name);
    if (value !== null && value !== "") filters[name] = value;
  }
  return filters;
}

/** The address's parameters with some of them set, or, where `undefined` or empty, taken away. */
export function withFilters(search: URLSearchParams, change: Record<string, string | undefined>): URLSearchParams {
  const changed = new URLSearchParams(search);
  for (const [name, value] of Object.entries(change)) {
    if (value === undefined || value === "") changed.delete(name);
    else changed.set(name, value);
  }
  return changed;
}

/** What the address says now. A page that is still being drawn knows an earlier one: a change of that would undo the last. */
function addressed(): URLSearchParams {
  return new URLSearchParams(window.location.search);
}

/** The filters of a page, and how to change them. `clear` leaves the tenant. */
export function useFilters<Name extends string>(names: readonly Name[]) {
  const [search, setSearch] = useSearchParams();
  const key = names.join(" ");
  const filters = useMemo(() => readFilters(search, key.split(" ") as Name[]), [search, key]);
  const set = useCallback(
    (change: { [Key in Name]?: string | undefined }) => setSearch(withFilters(addressed(), change), { replace: true }),
    [setSearch],
  );
  const clear = useCallback(() => {
    setSearch(withFilters(addressed(), Object.fromEntries(key.split(" ").map((name) => [name, undefined]))), { replace: true });
  }, [setSearch, key]);
  return { filters, set, clear, isFiltered: Object.keys(filters).length > 0 };
}

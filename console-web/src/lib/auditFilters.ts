/** What the address asks of the audit. */

/** The page's parameters, beside the tenant. */
export const AUDIT_FILTERS = ["scope", "actor", "kind", "action", "target", "from", "until"] as const;
export type AuditFilter = (typeof AUDIT_FILTERS)[number];

/** As `scope`: only what belongs to no tenant. */
export const ONLY_PLATFORM = "-";

/** Of the API's query what the filters set. */
export interface AuditQuery {
  tenant?: string;
  tenant_id?: string;
  actor?: string;
  kind?: string;
  action?: string;
  target?: string;
  from?: number;
  until?: number;
}

function instantOf(text: string | undefined): number | undefined {
  const at = Number(text ?? Number.NaN);
  return Number.isSafeInteger(at) && at > 0 ? at : undefined;
}

/** The chosen tenant goes before the scope, which is the platform or the id of a tenant that was deleted. */
export function auditQuery(filters: Partial<Record<AuditFilter, string>>, tenant: string | undefined): AuditQuery {
  const { scope, actor, kind, action, target } = filters;
  const query: AuditQuery = {};
  if (tenant !== undefined) query.tenant = tenant;
  else if (scope === ONLY_PLATFORM) query.tenant = ONLY_PLATFORM;
  else if (scope !== undefined) query.tenant_id = scope;
  if (actor !== undefined) query.actor = actor;
  if (kind !== undefined) query.kind = kind;
  if (action !== undefined) query.action = action;
  if (target !== undefined) query.target = target;
  const [from, until] = [instantOf(filters.from), instantOf(filters.until)];
  if (from !== undefined) query.from = from;
  if (until !== undefined) query.until = until;
  return query;
}

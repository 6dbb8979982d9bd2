/** The environment of an executor, as the SDK (executor-client) reads it. */

/** What an executor must know. */
export interface Access {
  /** Addresses of nodes. */
  schedulers: readonly string[];
  tenant: string;
  app: string;
  key: { id: string; secret: string };
  /** What the app demands; empty is the SDK's own choice. */
  signMethod: string;
}

/** Lines of an `.env` file. No value holds what a shell or systemd would read in another way. */
export function environmentOf({ schedulers, tenant, app, key, signMethod }: Access): string {
  const lines: [string, string][] = [
    ["CARILLON_SCHEDULERS", schedulers.join(",")],
    ["CARILLON_TENANT", tenant],
    ["CARILLON_APP", app],
    ["CARILLON_KEY_ID", key.id],
    ["CARILLON_KEY_SECRET", key.secret],
  ];
  if (signMethod !== "") lines.push(["CARILLON_SIGN_METHOD", signMethod]);
  return lines.map(([name, value]) => `${name}=${value}`).join("\n");
}

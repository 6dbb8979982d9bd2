/** What is worth a word about the nodes of a cluster. */
import type { Schema } from "../api/client";

type Node = Schema<"Node">;

/** online: alive; left: stopped on purpose; away: gone without a word. */
export type NodeState = "online" | "left" | "away";

/** Whether a node is there, and whether it said good-bye. */
export function nodeState(node: Pick<Node, "online" | "left_at" | "started_at">): NodeState {
  if (node.online) return "online";
  return node.left_at == null ? "away" : "left";
}

/** Further apart than this, clocks are worth a word, ms. */
export const CLOCK_OFF_MS = 100;

/** Whether a node's clock differs from the database's by more than it should. */
export function isClockOff(offset: number | null | undefined): boolean {
  return offset != null && Math.abs(offset) > CLOCK_OFF_MS;
}

/** Whether a node holds a lease: it is renewed before it ends. */
export function isHeld(lease: Pick<Schema<"Lease">, "node" | "expires_at">, now: number): boolean {
  return lease.node != null && lease.expires_at != null && lease.expires_at > now;
}

/** The versions that run, in order, where there are several; else none. */
export function mixedVersions(nodes: readonly Pick<Node, "online" | "version">[]): string[] {
  const versions = [...new Set(nodes.filter((node) => node.online).map((node) => node.version))].sort();
  return versions.length > 1 ? versions : [];
}

/** Settings whose name or value has every word of a search, in whatever case. */
export function findSettings(settings: readonly Schema<"Setting">[], search: string): Schema<"Setting">[] {
  const words = search.toLowerCase().split(/\s+/).filter((word) => word !== "");
  return settings.filter(({ name, value }) => words.every((word) => `${name} ${value}`.toLowerCase().includes(word)));
}

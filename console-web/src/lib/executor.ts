/** What an executor's figures mean. */
import type { Schema } from "../api/client";
import type { Tone } from "./states";

/** Whether, and if not why not, an executor takes runs. */
export type ExecutorState = "online" | "disabled" | "draining" | "weightless";

/** The state of an executor that is in the list; one that leaves does not come back, so that is shown first. */
export function stateOf(executor: Pick<Schema<"Executor">, "disabled" | "draining" | "weight">): ExecutorState {
  if (executor.draining) return "draining";
  if (executor.disabled) return "disabled";
  return executor.weight === 0 ? "weightless" : "online";
}

/** The meanings of these states. */
export const EXECUTOR_TONES: Record<ExecutorState, Tone> = { online: "good", disabled: "odd", draining: "open", weightless: "odd" };

/** How much of the capacity is running and how much is held for it, in percent; together at most 100. */
export function loadOf(executor: Pick<Schema<"Executor">, "capacity" | "running" | "held">): { running: number; held: number } {
  const percent = (runs: number) => (executor.capacity <= 0 ? 100 : Math.min(100, Math.round((runs / executor.capacity) * 100)));
  const running = executor.running <= 0 ? 0 : percent(executor.running);
  const held = executor.held <= 0 ? 0 : Math.min(percent(executor.held), 100 - running);
  return { running, held };
}

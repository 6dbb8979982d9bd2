/** Whether the page is visible. A browser opens only a few connections to a node for all of its pages together: hidden ones hold none. */
import { useSyncExternalStore } from "react";

/** Whether it can be seen now. */
export function isVisible(): boolean {
  return document.visibilityState !== "hidden";
}

/** Calls `changed` when it is hidden or shown, until the function that it gives is called. */
export function onVisible(changed: () => void): () => void {
  document.addEventListener("visibilitychange", changed);
  return () => document.removeEventListener("visibilitychange", changed);
}

/** The same for components. */
export function useVisible(): boolean {
  return useSyncExternalStore(onVisible, isVisible);
}

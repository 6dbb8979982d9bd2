/** Lets a drawing move to the left with the cluster's clock, by `--flow`, without React rendering it again. */
import { useLayoutEffect, type RefObject } from "react";
import { clusterNow } from "../../lib/now";

/** Smooth enough for a few px in a second, ms. */
const STEP_MS = 80;

/** Sets `--flow` of the element to the ms since `anchor`, negative, as px; in jumps of a second where motion is not wanted. */
export function useFlow(element: RefObject<HTMLElement | null>, anchor: number): void {
  useLayoutEffect(() => {
    const move = () => element.current?.style.setProperty("--flow", `${anchor - clusterNow()}px`);
    move();
    if (window.matchMedia("(prefers-reduced-motion: reduce)").matches) {
      const timer = window.setInterval(move, 1_000);
      return () => window.clearInterval(timer);
    }
    let last = 0;
    let frame = 0;
    const draw = (at: number) => {
      if (at - last >= STEP_MS) {
        last = at;
        move();
      }
      frame = requestAnimationFrame(draw);
    };
    frame = requestAnimationFrame(draw);
    return () => cancelAnimationFrame(frame);
  }, [element, anchor]);
}

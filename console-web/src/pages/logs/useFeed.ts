/** The output of an attempt as a component's state. */
import { useCallback, useEffect, useRef, useState } from "react";
import { Feed, type Output } from "../../lib/feed";

/** Reads and follows while the component is there. `mayDrop`: what comes may push out what is shown. */
export function useFeed(id: string, attempt: number, mayDrop: boolean) {
  const feed = useRef<Feed>(undefined);
  const [output, setOutput] = useState<Output>();
  useEffect(() => {
    const made = new Feed(id, attempt, setOutput);
    feed.current = made;
    made.toEnd();
    return () => made.end();
  }, [id, attempt]);
  useEffect(() => {
    if (feed.current !== undefined) feed.current.mayDrop = mayDrop;
  }, [mayDrop]);
  const toEnd = useCallback(() => feed.current?.toEnd(), []);
  const earlier = useCallback(async () => feed.current?.earlier(), []);
  return { output, toEnd, earlier };
}

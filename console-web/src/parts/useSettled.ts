/** A value that has stopped changing. */
import { useEffect, useState } from "react";

/** `value` as it was when it last stayed the same for so long: nothing is asked while one types. */
export function useSettled<Value>(value: Value, ms: number): Value {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(() => value), ms);
    return () => window.clearTimeout(timer);
  }, [value, ms]);
  return settled;
}

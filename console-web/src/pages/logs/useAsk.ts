/** Something that is read because a person asked for it: it changes nothing, and says what went wrong where it was asked. */
import { useState } from "react";

export function useAsk() {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const ask = async (call: () => Promise<unknown>) => {
    setBusy(true);
    setError(null);
    try {
      await call();
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  return { busy, error, ask };
}

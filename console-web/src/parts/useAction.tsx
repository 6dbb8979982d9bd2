/** Something that a person does to the node: while it goes on, when it has worked, when it has not. */
import { App } from "antd";
import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { renewed } from "../api/renew";
import { wordsOf } from "./Failure";

/** Of what went wrong, the last is shown. */
export const FAILURE = "failure";

interface Options<Answer> {
  /** What to say when it has worked; absent: "Done". */
  done?: string | ((answer: Answer) => string);
  /** What to do with the answer. */
  then?: (answer: Answer) => void;
  /** Shows a failure elsewhere than in a message; gives `true` when it did. */
  failed?: (error: unknown) => boolean;
}

/**
 * `run(call, options)` does `call`, says how it went, and has everything on the page read again.
 * It never throws; `busy` is true while it goes on, and a second click does nothing.
 */
export function useAction(): { busy: boolean; run: <Answer>(call: () => Promise<Answer>, options?: Options<Answer>) => Promise<boolean> } {
  const { message, notification } = App.useApp();
  const queries = useQueryClient();
  const { t } = useTranslation();
  const [busy, setBusy] = useState(false);
  const isBusy = useRef(false);
  const run = useCallback(
    async <Answer,>(call: () => Promise<Answer>, options: Options<Answer> = {}): Promise<boolean> => {
      if (isBusy.current) return false;
      isBusy.current = true;
      setBusy(true);
      try {
        const answer = await call();
        await renewed(queries);
        message.success(typeof options.done === "function" ? options.done(answer) : (options.done ?? t("done")));
        notification.destroy(FAILURE);
        options.then?.(answer);
        return true;
      } catch (error) {
        if (options.failed?.(error) !== true) {
          const { title, detail, help } = wordsOf(error, t);
          notification.error({
            title,
            description: [detail, help].filter((text) => text !== "").join("\n"),
            duration: 0,
            className: "failure-notification",
            key: FAILURE,
          });
        }
        return false;
      } finally {
        isBusy.current = false;
        setBusy(false);
      }
    },
    [message, notification, queries, t],
  );
  return { busy, run };
}

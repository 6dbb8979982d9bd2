/** Whether an executor takes runs, in a word. */
import { Tooltip } from "antd";
import { useTranslation } from "react-i18next";
import type { Schema } from "../../api/client";
import { EXECUTOR_TONES, stateOf } from "../../lib/executor";
import { Word } from "../../parts/Tags";

export function State({ of }: { of: Schema<"Executor"> }) {
  const { t: own } = useTranslation("executors");
  const state = stateOf(of);
  return (
    <Tooltip title={[own(`executors.state_help.${state}`), of.note].filter((text) => text !== "").join(" — ")}>
      <span>
        <Word tone={EXECUTOR_TONES[state]}>{own(`executors.state.${state}`)}</Word>
      </span>
    </Tooltip>
  );
}

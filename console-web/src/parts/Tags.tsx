/** States as coloured words. The colour never says more than the word does. */
import { Tag } from "antd";
import { useTranslation } from "react-i18next";
import { isLogStatus, isTaskState, toneOfLog, toneOfTask, type Tone } from "../lib/states";

/** A word on a ground of its meaning. */
export function Word({ tone, children }: { tone: Tone; children: string }) {
  return <Tag className={`word word-${tone}`}>{children}</Tag>;
}

/** The state of a task log. */
export function LogStatus({ status }: { status: string }) {
  const { t } = useTranslation();
  return <Word tone={toneOfLog(status)}>{isLogStatus(status) ? t(`log_status.${status}`) : status}</Word>;
}

/** The state of a task. */
export function TaskState({ state }: { state: string }) {
  const { t } = useTranslation();
  return <Word tone={toneOfTask(state)}>{isTaskState(state) ? t(`task_state.${state}`) : state}</Word>;
}

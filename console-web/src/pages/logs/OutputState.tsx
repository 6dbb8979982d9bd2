/** In words: how the output is, and how the reading of it goes. */
import { Typography } from "antd";
import type { TFunction } from "i18next";
import { useTranslation } from "react-i18next";
import type { FeedState, Output } from "../../lib/feed";
import { useNow } from "../../lib/now";
import { instant, viewerZone } from "../../lib/time";
import { Failure } from "../../parts/Failure";

const STATES = ["not_started", "never_started", "running", "ended", "not_kept", "executor_gone", "unreachable", "no_output", "executor_unknown", "sharded"] as const;

/** States that explain why there is no text, or no more of it. */
const EXPLAINS = new Set<string>(["not_started", "never_started", "not_kept", "executor_gone", "unreachable", "no_output", "executor_unknown", "sharded"]);

function standing({ said }: Output, t: TFunction<"logs">): string | undefined {
  if (said === undefined || !EXPLAINS.has(said.state)) return undefined;
  const known = STATES.find((word) => word === said.state);
  if (known === undefined) return said.detail;
  const at = said.executor_heard_at == null ? "–" : instant(said.executor_heard_at, viewerZone());
  return t(`output.state.${known}`, { executor: said.executor ?? "–", at });
}

function Lost({ until }: { until: number }) {
  const { t } = useTranslation("logs");
  const seconds = Math.max(0, Math.ceil((until - useNow(1_000)) / 1_000));
  return <>{t("output.lost", { seconds })}</>;
}

function Reading({ state, isEmpty }: { state: FeedState; isEmpty: boolean }) {
  const { t } = useTranslation("logs");
  switch (state.is) {
    case "connecting":
      return <>{t("output.connecting")}</>;
    case "following":
      return <>{t("output.following")}</>;
    case "paused":
      return <>{t("output.paused")}</>;
    case "lost":
      return <Lost until={state.until} />;
    case "complete":
      return <>{t(isEmpty ? "output.complete_empty" : "output.complete")}</>;
    case "gone":
      return <>{t("output.run_gone")}</>;
    case "refused":
      return null;
  }
}

export function OutputState({ output, again }: { output: Output; again: () => void }) {
  const { t } = useTranslation("logs");
  if (output.state.is === "refused") return <Failure error={output.state.error} again={again} />;
  const why = standing(output, t);
  const isEmpty = output.held.next === 0;
  return (
    <Typography.Text type="secondary" role="status" data-output={output.state.is}>
      {why}
      {why !== undefined && " "}
      {/* What explains an empty text says it all. */}
      {(why === undefined || !isEmpty || output.state.is !== "complete") && <Reading state={output.state} isEmpty={isEmpty} />}
      {output.said?.cut === true && ` ${t("output.cut")}`}
    </Typography.Text>
  );
}

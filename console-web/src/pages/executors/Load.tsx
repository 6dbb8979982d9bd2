/** How much of an executor's capacity is taken: a bar, and the numbers beside it. */
import { Tooltip } from "antd";
import { useTranslation } from "react-i18next";
import type { Schema } from "../../api/client";
import { loadOf } from "../../lib/executor";

export function Load({ of }: { of: Schema<"Executor"> }) {
  const { t: own } = useTranslation("executors");
  const { running, held } = loadOf(of);
  if (of.plain) return <PlainLoad of={of} />;
  return (
    <Tooltip title={own("executors.load_help")}>
      <span className="load">
        <span className="number">{own("executors.load_short", of)}</span>
        <span className="load-bar" role="img" aria-label={own("executors.load_numbers", of)}>
          <span className="load-running" style={{ width: `${running}%` }} />
          <span className="load-held" style={{ width: `${held}%` }} />
        </span>
      </span>
    </Tooltip>
  );
}

/** Executors of xxl-job tell what they run, and not how much they can. */
function PlainLoad({ of }: { of: Schema<"Executor"> }) {
  const { t } = useTranslation("xxljob");
  return (
    <Tooltip title={t("executors.load_help")}>
      <span className="number">{t("executors.load", of)}</span>
    </Tooltip>
  );
}

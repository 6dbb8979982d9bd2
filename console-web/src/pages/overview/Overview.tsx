/** Is everything firing on time, what failed and why, what comes next. */
import { useQueryClient } from "@tanstack/react-query";
import { Alert } from "antd";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { renew } from "../../api/renew";
import { useSession } from "../../api/session";
import { instant, viewerZone } from "../../lib/time";
import { useLink, useTenant } from "../../lib/tenant";
import { Failure } from "../../parts/Failure";
import { Page } from "../../parts/Page";
import { Charts } from "./Charts";
import { UpcomingFires } from "./UpcomingFires";
import { Engine } from "./Engine";
import { Failures } from "./Failures";
import { FigureRow } from "./FigureRow";
import { ForecastMap } from "./ForecastMap";
import { useFacts } from "./useFacts";
import { Verdict } from "./Verdict";

export default function Overview() {
  const { t } = useTranslation("overview");
  const common = useTranslation().t;
  const { tenant } = useTenant();
  const { may } = useSession();
  const queries = useQueryClient();
  const link = useLink();
  const { hour, row, facts, isWaiting, engine, error } = useFacts(tenant);
  const counted = hour.answer?.counted_until;
  const subtitle = counted === undefined ? undefined : counted === 0 ? t("not_counted") : t("as_of", { at: instant(counted, viewerZone(), "minute") });
  const seesLogs = may("task_logs.read", { tenant });
  return (
    <Page title={common("pages.overview")} subtitle={subtitle}>
      <Verdict facts={facts} isWaiting={isWaiting} />
      <Failure error={error} again={() => void renew(queries)} />
      {hour.isPartial && (
        <Alert
          type="info"
          showIcon
          title={t("partial")}
          description={t("partial_help", { tenant: tenant ?? "" })}
          action={<Link to={link("/statistics")}>{t("to_statistics")}</Link>}
        />
      )}
      <FigureRow row={row} />
      {seesLogs && <Failures tenant={tenant} />}
      {seesLogs && <UpcomingFires tenant={tenant} />}
      {!hour.isPartial && <Charts tenant={tenant} />}
      <ForecastMap tenant={tenant} />
      <Engine engine={engine} />
    </Page>
  );
}

/** Says that what one sees may be old, or that the node has been upgraded. */
import { Alert, Button } from "antd";
import { useTranslation } from "react-i18next";
import { useLive } from "../lib/live";
import { useNow } from "../lib/now";

export function Banner() {
  const { state, tryNow, isOther, version } = useLive();
  const { t } = useTranslation();
  if (state.is === "disconnected") return <Disconnected until={state.until} tryNow={tryNow} />;
  if (!isOther || version === undefined) return null;
  return (
    <Alert
      banner
      type="info"
      role="status"
      title={t("live.other_version", { version })}
      action={
        <Button size="small" onClick={() => window.location.reload()}>
          {t("live.reload")}
        </Button>
      }
    />
  );
}

function Disconnected({ until, tryNow }: { until: number; tryNow: () => void }) {
  const { t } = useTranslation();
  const seconds = Math.max(0, Math.ceil((until - useNow(1_000)) / 1_000));
  return (
    <Alert
      banner
      type="warning"
      role="alert"
      title={t("live.disconnected", { seconds })}
      action={
        <Button size="small" onClick={tryNow}>
          {t("live.try_now")}
        </Button>
      }
    />
  );
}

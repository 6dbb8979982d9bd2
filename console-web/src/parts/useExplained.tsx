/** Refusals about people, in plain words. */
import { Alert, App } from "antd";
import { useCallback } from "react";
import { useTranslation } from "react-i18next";
import { refusalOf } from "../lib/refusals";
import { Failure } from "./Failure";
import { FAILURE } from "./useAction";

/** For `useAction`'s `failed`: says it in plain words when the refusal is a known one. */
export function useExplained(): (error: unknown) => boolean {
  const { notification } = App.useApp();
  const { t } = useTranslation("people");
  return useCallback(
    (error) => {
      const refusal = refusalOf(error);
      if (refusal === undefined) return false;
      notification.error({ title: t("refused.title"), description: t(`refused.${refusal.key}`, refusal.values), duration: 0, className: "failure-notification", key: FAILURE });
      return true;
    },
    [notification, t],
  );
}

/** A failure of a form: in plain words when it is a known refusal, else as everywhere. */
export function Refused({ error }: { error: unknown }) {
  const { t } = useTranslation("people");
  const refusal = refusalOf(error);
  if (refusal === undefined) return <Failure error={error} />;
  return <Alert type="error" showIcon role="alert" title={t("refused.title")} description={t(`refused.${refusal.key}`, refusal.values)} />;
}

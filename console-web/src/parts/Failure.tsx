/** What went wrong, and what to do about it. */
import { Alert, Button } from "antd";
import type { TFunction } from "i18next";
import { useTranslation } from "react-i18next";
import { Problem, Unreachable } from "../api/client";
import { detailOf } from "../i18n/fieldWords";

interface Words {
  title: string;
  help: string;
  detail: string;
}

/** An error in words: what happened, what the node said, what helps. */
export function wordsOf(error: unknown, t: TFunction): Words {
  if (error instanceof Unreachable) {
    return { title: t("failure.unreachable"), help: t(error.mayBeDone ? "failure.unreachable_change_help" : "failure.unreachable_help"), detail: "" };
  }
  if (!(error instanceof Problem)) {
    return { title: t("failure.bug"), help: t("failure.bug_help"), detail: error instanceof Error ? error.message : String(error) };
  }
  const detail = detailOf(error);
  switch (error.status) {
    case 400:
    case 415:
    case 422:
      return { title: t("failure.invalid"), help: t("failure.invalid_help"), detail };
    case 413:
      return { title: t("failure.invalid"), help: t("failure.too_large_help"), detail };
    case 401:
      return { title: t("failure.signed_out"), help: t("failure.signed_out_help"), detail };
    case 403:
      return { title: t("failure.forbidden"), help: t("failure.forbidden_help"), detail };
    case 404:
      return { title: t("failure.not_found"), help: t("failure.not_found_help"), detail };
    case 409:
      return { title: t("failure.conflict"), help: t("failure.conflict_help"), detail };
    case 429:
      return { title: t("failure.too_many"), help: t("failure.too_many_help", { seconds: error.retryAfter ?? 1 }), detail };
    default:
      if (error.status >= 500) return { title: t("failure.server"), help: t("failure.server_help"), detail };
      return { title: t("failure.other", { status: error.status }), help: t("failure.other_help"), detail };
  }
}

/** A failure in place of what could not be shown; nothing when there is none. */
export function Failure({ error, again }: { error: unknown; again?: () => void }) {
  const { t } = useTranslation();
  if (error === null || error === undefined) return null;
  const { title, help, detail } = wordsOf(error, t);
  return (
    <Alert
      type="error"
      showIcon
      role="alert"
      title={title}
      description={
        <>
          {detail !== "" && <div className="failure-detail">{detail}</div>}
          {help !== "" && <div>{help}</div>}
        </>
      }
      action={again && <Button onClick={again}>{t("retry")}</Button>}
    />
  );
}

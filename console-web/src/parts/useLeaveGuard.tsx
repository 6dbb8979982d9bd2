/** Asks before a form that holds something unsaved is left. */
import { Modal, Typography } from "antd";
import { useCallback, useEffect, useRef, type ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { useBlocker } from "react-router";

interface Guard {
  /** To be shown with the form. */
  question: ReactNode;
  /** The form is saved: from now on it is left without a question, until something else is typed. */
  release: () => void;
}

export function useLeaveGuard(isDirty: boolean): Guard {
  const { t } = useTranslation();
  const isReleased = useRef(false);
  useEffect(() => {
    if (!isDirty) isReleased.current = false;
  }, [isDirty]);
  const blocker = useBlocker(useCallback(() => isDirty && !isReleased.current, [isDirty]));
  // For what leaves the console, or loads it anew, the browser asks in its own words.
  useEffect(() => {
    if (!isDirty) return undefined;
    const ask = (event: BeforeUnloadEvent) => {
      if (!isReleased.current) event.preventDefault();
    };
    window.addEventListener("beforeunload", ask);
    return () => window.removeEventListener("beforeunload", ask);
  }, [isDirty]);
  const release = useCallback(() => {
    isReleased.current = true;
  }, []);
  const question = (
    <Modal
      open={blocker.state === "blocked"}
      title={t("leave.question")}
      okText={t("leave.leave")}
      cancelText={t("leave.stay")}
      okButtonProps={{ danger: true }}
      onOk={() => blocker.proceed?.()}
      onCancel={() => blocker.reset?.()}
      destroyOnHidden
    >
      <Typography.Text>{t("leave.consequence")}</Typography.Text>
    </Modal>
  );
  return { question, release };
}

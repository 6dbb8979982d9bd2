/** Asks before a form that holds something unsaved is left. */
import { Modal, Typography } from "antd";
import { useCallback, useEffect, useRef, type ReactNode, type RefObject } from "react";
import { useTranslation } from "react-i18next";
import { useBlocker } from "react-router";

interface Guard {
  /** To be shown with the form. */
  question: ReactNode;
  /** The form is saved: from now on it is left without a question, until something else is typed. */
  release: () => void;
}

export function useLeaveGuard(isDirty: boolean): Guard {
  const isReleased = useRef(false);
  useEffect(() => {
    if (!isDirty) isReleased.current = false;
  }, [isDirty]);
  const release = useCallback(() => {
    isReleased.current = true;
  }, []);
  return { question: isDirty && <Guarding isReleased={isReleased} />, release };
}

/** As long as it is shown, leaving asks. */
function Guarding({ isReleased }: { isReleased: RefObject<boolean> }) {
  const { t } = useTranslation();
  const blocker = useBlocker(() => !isReleased.current);
  // For leaving or reloading the console, the browser asks in its own words.
  useEffect(() => {
    const ask = (event: BeforeUnloadEvent) => {
      if (!isReleased.current) event.preventDefault();
    };
    window.addEventListener("beforeunload", ask);
    return () => window.removeEventListener("beforeunload", ask);
  }, [isReleased]);
  return (
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
}

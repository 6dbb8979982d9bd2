/** A part of a page in a frame of its own, with its heading. */
import { Card, Typography } from "antd";
import { useId, type ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Failure } from "./Failure";
import { Placeholder } from "./Placeholder";

interface Properties {
  title: string;
  /** Beside the heading: what can be chosen, or a link. */
  extra?: ReactNode;
  /** Whether there is something to show; what is on its way, or could not be read, must not look like nothing. */
  isKnown?: boolean;
  /** Why it, or what is newer than what is shown, could not be read. */
  error?: unknown;
  /** Reads it again; absent where the error is shown elsewhere. */
  again?: () => void;
  children: ReactNode;
}

export function Section({ title, extra, isKnown = true, error, again, children }: Properties) {
  const { t } = useTranslation();
  const id = useId();
  const isLost = error !== null && error !== undefined;
  const isWaiting = !isKnown && !isLost;
  return (
    <section aria-labelledby={id} aria-busy={isWaiting}>
      <Card
        size="small"
        className="section"
        title={
          <Typography.Title level={2} id={id} className="section-title">
            {title}
          </Typography.Title>
        }
        extra={extra}
      >
        {again !== undefined && <Failure error={error} again={again} />}
        {isWaiting && <Placeholder />}
        {!isKnown && isLost && <Typography.Text type="secondary">{t("not_known")}</Typography.Text>}
        {isKnown && children}
      </Card>
    </section>
  );
}

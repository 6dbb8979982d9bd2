/** A part of a page in a frame of its own, with its heading. */
import { Card, Typography } from "antd";
import { useId, type ReactNode } from "react";

interface Properties {
  title: string;
  /** Beside the heading: what can be chosen, or a link. */
  extra?: ReactNode;
  children: ReactNode;
}

export function Section({ title, extra, children }: Properties) {
  const id = useId();
  return (
    <section aria-labelledby={id}>
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
        {children}
      </Card>
    </section>
  );
}

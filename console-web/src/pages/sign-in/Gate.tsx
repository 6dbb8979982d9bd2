/** The one card of the pages before the console. */
import { Card, Flex, Typography } from "antd";
import { useEffect, type ReactNode } from "react";
import { DisplayMenus } from "../../parts/DisplayMenus";

export function Gate({ title, children }: { title: string; children: ReactNode }) {
  useEffect(() => {
    document.title = `${title} · carillon`;
  }, [title]);
  return (
    <main className="before-login">
      <Flex justify="end" className="gate-corner">
        <DisplayMenus />
      </Flex>
      <Flex justify="center">
        <Card className="gate">
          <Flex align="center" gap="small" className="gate-brand">
            <img src="/bell.svg" alt="" width={32} height={32} />
            <Typography.Title level={1} className="page-title">
              carillon
            </Typography.Title>
          </Flex>
          <Typography.Title level={2} className="gate-title">
            {title}
          </Typography.Title>
          {children}
        </Card>
      </Flex>
    </main>
  );
}

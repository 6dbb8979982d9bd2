/** The frame of a page: its heading, what can be done, and what it shows. */
import { Flex, Typography } from "antd";
import { useEffect, type ReactNode } from "react";

interface Properties {
  title: ReactNode;
  /** The window's title; the heading's text where that is plain. */
  windowTitle?: string;
  /** One line below the heading. */
  subtitle?: ReactNode;
  /** Buttons, at the right. */
  actions?: ReactNode;
  children: ReactNode;
}

export function Page({ title, windowTitle, subtitle, actions, children }: Properties) {
  const plain = windowTitle ?? (typeof title === "string" ? title : "");
  useEffect(() => {
    document.title = plain === "" ? "carillon" : `${plain} · carillon`;
  }, [plain]);
  return (
    <Flex vertical gap="middle" className="page">
      <Flex justify="space-between" align="start" gap="middle" wrap>
        <div>
          <Typography.Title level={1} className="page-title">
            {title}
          </Typography.Title>
          {subtitle !== undefined && <Typography.Text type="secondary">{subtitle}</Typography.Text>}
        </div>
        {actions !== undefined && (
          <Flex gap="small" wrap>
            {actions}
          </Flex>
        )}
      </Flex>
      {children}
    </Flex>
  );
}

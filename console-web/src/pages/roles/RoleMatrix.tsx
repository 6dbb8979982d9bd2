/** Roles side by side: which allows what, beside what one holds oneself. */
import { CheckOutlined } from "@ant-design/icons";
import { Grid, Input, Typography, type TableProps } from "antd";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { Schema } from "../../api/client";
import { useSession } from "../../api/session";
import { heldAnywhere } from "../../lib/access";
import { useDescribed } from "../../lib/described";
import { DataTable } from "../../parts/DataTable";

type Role = Schema<"Role">;
type Described = Schema<"Permission">;

function Mark({ on }: { on: boolean }) {
  const { t } = useTranslation("people");
  return on ? <CheckOutlined className="mark" aria-label={t("roles.allowed")} role="img" /> : <span aria-label={t("roles.not_allowed")} role="img" />;
}

export function RoleMatrix({ roles }: { roles: readonly Role[] }) {
  const { t } = useTranslation("people");
  const { me } = useSession();
  const described = useDescribed();
  const [search, setSearch] = useState("");
  // It stays while one scrolls to the roles at the right: they need room beside it.
  const permissionPx = Grid.useBreakpoint().md === false ? 170 : 300;
  const mine = heldAnywhere(me.access);
  const wanted = search.trim().toLowerCase();
  const rows = me.permissions.map(described).filter(({ name, description }) => `${name} ${description}`.toLowerCase().includes(wanted));
  const column = (key: string, title: string, permissions: ReadonlySet<string>) => ({
    key,
    title,
    width: 110,
    align: "center" as const,
    render: (_: unknown, { name }: Described) => <Mark on={permissions.has(name)} />,
  });
  const columns: TableProps<Described>["columns"] = [
    {
      key: "permission",
      title: t("roles.permission"),
      width: permissionPx,
      fixed: "left",
      render: (_, { name, description }) => (
        <>
          <div className="mono">{name}</div>
          <Typography.Text type="secondary">{description}</Typography.Text>
        </>
      ),
    },
    column("you", t("roles.you"), mine),
    ...roles.map((role) => column(role.id, role.name, new Set(role.permissions))),
  ];
  return (
    <section aria-label={t("roles.matrix")}>
      <Typography.Paragraph type="secondary">{t("roles.matrix_about")}</Typography.Paragraph>
      <Input.Search className="filter matrix-search" allowClear aria-label={t("picker.search")} placeholder={t("picker.search")} value={search} onChange={(event) => setSearch(event.target.value)} />
      <DataTable<Described> size="small" rowKey={({ name }) => name} columns={columns} dataSource={rows} pagination={false} scroll={{ x: permissionPx + 110 + roles.length * 110, y: "60vh" }} />
    </section>
  );
}

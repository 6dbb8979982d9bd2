/** Saves the tasks of the chosen tenant and app as a task file. */
import { DownloadOutlined } from "@ant-design/icons";
import { Button } from "antd";
import { useTranslation } from "react-i18next";
import { client, type Schema } from "../../api/client";
import { fileName, writeTaskFile } from "../../lib/taskFile";
import { useAction } from "../../parts/useAction";

async function allPages(tenant: string | undefined, app: string | undefined): Promise<Schema<"Exported">[]> {
  const pages: Schema<"Exported">[] = [];
  let after: string | null | undefined;
  do {
    const { data } = await client.GET("/tasks/export", { params: { query: { tenant, app, after, limit: 500 } } });
    if (data === undefined) break;
    pages.push(data);
    after = data.next;
  } while (after !== null && after !== undefined);
  return pages;
}

function save(text: string, name: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  URL.revokeObjectURL(address);
}

export function ExportButton({ tenant, app }: { tenant: string | undefined; app: string | undefined }) {
  const { t } = useTranslation("tasks");
  const { busy, run } = useAction();
  const name = fileName(tenant, app);
  const download = () =>
    run(() => allPages(tenant, app), { done: t("export.done", { name }), then: (pages) => save(writeTaskFile(pages), name) });
  return (
    <Button icon={<DownloadOutlined aria-hidden />} loading={busy} onClick={() => void download()} title={t("export.help")}>
      {t("export.button")}
    </Button>
  );
}

/** Applies a task file: first shows what it would create and change, then does it, all or nothing. */
import { UploadOutlined } from "@ant-design/icons";
import { Alert, Button, Drawer, Flex, Input, Typography } from "antd";
import { useRef, useState, type ChangeEvent } from "react";
import { useTranslation } from "react-i18next";
import { client, type Schema } from "../../api/client";
import { readTaskFile } from "../../lib/taskFile";
import { Failure } from "../../parts/Failure";
import { useAction } from "../../parts/useAction";
import { AppliedTasks } from "./AppliedTasks";

export function ImportButton() {
  const { t } = useTranslation("tasks");
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button icon={<UploadOutlined aria-hidden />} onClick={() => setOpen(true)}>
        {t("import.button")}
      </Button>
      <Drawer open={open} onClose={() => setOpen(false)} title={t("import.title")} size={720} destroyOnHidden>
        <Import />
      </Drawer>
    </>
  );
}

function useApply(text: string) {
  const { t } = useTranslation("tasks");
  const { busy, run } = useAction();
  const [error, setError] = useState<unknown>();
  const [applied, setApplied] = useState<Schema<"Applied">>();
  const apply = async (dry_run: boolean) => {
    const read = readTaskFile(text);
    if ("problem" in read) return;
    setError(undefined);
    await run(async () => (await client.POST("/tasks/apply", { params: { query: { dry_run } }, body: read.file })).data, {
      done: t(dry_run ? "import.checked" : "import.done"),
      then: setApplied,
      failed: (failure) => {
        setApplied(undefined);
        setError(failure);
        return true;
      },
    });
  };
  const forget = () => {
    setApplied(undefined);
    setError(undefined);
  };
  return { busy, error, applied, apply, forget };
}

function Import() {
  const { t } = useTranslation("tasks");
  const [text, setText] = useState("");
  const { busy, error, applied, apply, forget } = useApply(text);
  const change = (now: string) => {
    setText(now);
    // What was checked was another file.
    forget();
  };
  const read = readTaskFile(text);
  const problem = "problem" in read && read.problem !== "empty" ? read : undefined;
  const isChecked = applied?.dry_run === true && applied.created + applied.changed > 0;
  return (
    <Flex vertical gap="middle">
      <Typography.Text>{t("import.what")}</Typography.Text>
      <Typography.Text type="secondary">{t("import.other_formats")}</Typography.Text>
      <FileField onText={change} disabled={busy} />
      <Input.TextArea
        aria-label={t("import.text")}
        placeholder={t("import.text")}
        value={text}
        // What is checked is what is applied.
        readOnly={busy}
        onChange={(event) => change(event.target.value)}
        className="mono grows" rows={6}
        spellCheck={false}
      />
      {problem !== undefined && <Alert type="warning" showIcon title={t(`import.problem.${problem.problem}`)} description={problem.message === undefined ? undefined : <span className="failure-detail">{problem.message}</span>} />}
      <Failure error={error} />
      {applied !== undefined && <AppliedTasks applied={applied} />}
      <Flex gap="small">
        <Button type={isChecked ? "default" : "primary"} loading={busy} disabled={"problem" in read} onClick={() => void apply(true)}>
          {t("import.check")}
        </Button>
        {isChecked && (
          <Button type="primary" loading={busy} onClick={() => void apply(false)}>
            {t("import.apply", { count: applied.created + applied.changed })}
          </Button>
        )}
      </Flex>
    </Flex>
  );
}

function FileField({ onText, disabled }: { onText: (text: string) => void; disabled: boolean }) {
  const { t } = useTranslation("tasks");
  const input = useRef<HTMLInputElement>(null);
  const take = async (event: ChangeEvent<HTMLInputElement>) => {
    const file = event.target.files?.[0];
    if (file !== undefined) onText(await file.text());
    // The same file can be chosen again after it was mended.
    event.target.value = "";
  };
  return (
    <div>
      <input ref={input} type="file" accept=".json,application/json" hidden aria-label={t("import.choose")} onChange={(event) => void take(event)} />
      <Button disabled={disabled} onClick={() => input.current?.click()}>{t("import.choose")}</Button>
    </div>
  );
}

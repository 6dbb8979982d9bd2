/** What a run logs: which attempt, its text as it comes, and all of it as a file. */
import { DownloadOutlined } from "@ant-design/icons";
import { Button, Card, Flex, Select, Typography } from "antd";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { wholeOutput } from "../../lib/feed";
import { size } from "../../lib/size";
import type { Log } from "../../lib/taskLog";
import { Failure } from "../../parts/Failure";
import { OutputView } from "./OutputView";
import { useAsk } from "./useAsk";
import { useFeed } from "./useFeed";

/** Saves a text as a file. */
function save(parts: string[], name: string): void {
  const address = URL.createObjectURL(new Blob(parts, { type: "text/plain;charset=utf-8" }));
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = name;
  anchor.click();
  URL.revokeObjectURL(address);
}

function Download({ log, attempt }: { log: Log; attempt: number }) {
  const { t } = useTranslation("logs");
  const { busy, error, ask } = useAsk();
  const [bytes, setBytes] = useState(0);
  const download = async () => save(await wholeOutput(log.id, attempt, setBytes), `${log.id}-${attempt}.log`);
  return (
    <>
      <Button icon={<DownloadOutlined aria-hidden />} loading={busy} onClick={() => void ask(download)}>
        {busy ? t("output.downloading", { size: size(bytes) }) : t("output.download")}
      </Button>
      <Failure error={error} />
    </>
  );
}

function Followed({ log, attempt }: { log: Log; attempt: number }) {
  const { t } = useTranslation("logs");
  const [follows, setFollows] = useState(true);
  const { output, toEnd, earlier } = useFeed(log.id, attempt, follows);
  if (output === undefined) return null;
  return (
    <OutputView output={output} label={t("output.label", { attempt })} follows={follows} setFollows={setFollows} earlier={earlier} toEnd={toEnd}>
      {output.held.next > 0 && <Download log={log} attempt={attempt} />}
    </OutputView>
  );
}

export function OutputPanel({ log }: { log: Log }) {
  const { t } = useTranslation("logs");
  const [chosen, setChosen] = useState<number>();
  const latest = Math.max(1, log.attempt);
  // A view of the latest attempt moves on to the next.
  const attempt = chosen ?? latest;
  return (
    <Card size="small" className="log-part" title={<Typography.Title level={2}>{t("output.title")}</Typography.Title>}>
      <Flex vertical gap="small">
        <Typography.Text type="secondary">{t("output.about")}</Typography.Text>
        {latest > 1 && (
          <div>
            <Select
              className="log-filter"
              aria-label={t("output.attempt")}
              value={attempt}
              options={Array.from({ length: latest }, (_, index) => ({ value: index + 1, label: t("output.attempt_n", { attempt: index + 1 }) }))}
              onChange={(number) => setChosen(number === latest ? undefined : number)}
            />
          </div>
        )}
        <Followed key={attempt} log={log} attempt={attempt} />
      </Flex>
    </Card>
  );
}

/** What to type to go on: for all, or for the group that is chosen. */
import { Flex, Segmented, Typography } from "antd";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useSession } from "../../api/session";
import { commandsOf, KINDS, kindOf, type Kind } from "../../lib/imports";
import { useLink } from "../../lib/tenant";
import { CopyButton } from "../../parts/CopyButton";
import { Section } from "../../parts/Section";

interface Properties {
  tenant: string;
  /** Of what was chosen, else the first; absent where nothing is imported yet. */
  source: string | undefined;
  /** Only this group. */
  app: string | undefined;
  isEmpty: boolean;
}

export function Commands({ tenant, source, app, isEmpty }: Properties) {
  const { t } = useTranslation("imports");
  const { may } = useSession();
  const link = useLink();
  const [kind, setKind] = useState<Kind>(kindOf(source));
  const { look, take, move, back } = commandsOf({ url: window.location.origin, tenant, kind, source, app });
  return (
    <Section
      title={isEmpty ? t("commands.title_empty", { tenant }) : app === undefined ? t("commands.title") : t("commands.title_of", { app })}
      extra={<Segmented aria-label={t("commands.kind")} value={kind} onChange={setKind} options={KINDS.map((value) => ({ value, label: value }))} />}
    >
      <Flex vertical gap="middle">
        {isEmpty && <Typography.Text>{t("commands.empty")}</Typography.Text>}
        <Typography.Text type="secondary">{t("commands.help")}</Typography.Text>
        <ol className="import-steps">
          <Step n={1} text={t("commands.look")} command={look} />
          <Step n={2} text={t(`commands.take.${kind}`)} command={take} />
          {move !== undefined && (
            <li>
              <div>{t("commands.door")}</div>
              {may("apps.read", { tenant }) && <Link to={link("/apps", { tenant })}>{t("commands.to_apps")}</Link>}
            </li>
          )}
          {move === undefined ? <li>{t("commands.by_hand")}</li> : <Step n={4} text={t("commands.move")} command={move} />}
          {back !== undefined && <Step n={5} text={t("commands.back")} command={back} />}
        </ol>
        <Typography.Text type="secondary">{t("commands.more")}</Typography.Text>
      </Flex>
    </Section>
  );
}

function Step({ n, text, command }: { n: number; text: string; command: string }) {
  const { t } = useTranslation("imports");
  return (
    <li>
      <Flex justify="space-between" align="start" gap="small">
        <span>{text}</span>
        <CopyButton text={command} label={t("commands.copy", { n })} />
      </Flex>
      <pre className="raw">{command}</pre>
    </li>
  );
}

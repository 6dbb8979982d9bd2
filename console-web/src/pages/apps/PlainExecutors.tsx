/** The executors of an app that speak xxl-job's protocol, and what their libraries cannot do. */
import { Flex, Typography } from "antd";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { Schema } from "../../api/client";
import { EXECUTOR_TONES, stateOf } from "../../lib/executor";
import { useLink } from "../../lib/tenant";
import { libraryOf, type Library } from "../../lib/xxljob";
import { Failure } from "../../parts/Failure";
import { SmallTable } from "../../parts/SmallTable";
import { Word } from "../../parts/Tags";

/** More are counted, not shown. */
const SHOWN = 10;

interface Properties {
  app: Schema<"App">;
  executors: Schema<"Executor">[];
  libraries: readonly Library[];
  isKnown: boolean;
  error: unknown;
  again: () => void;
}

export function PlainExecutors({ app, executors, libraries, isKnown, error, again }: Properties) {
  const { t } = useTranslation("xxljob");
  const { t: common } = useTranslation();
  const { t: own } = useTranslation("executors");
  const link = useLink();
  const columns = [{ title: own("executors.address") }, { title: t("executors.library") }, { title: t("executors.agent") }, { title: common("status") }];
  const rows = executors.slice(0, SHOWN).map((executor) => ({
    key: executor.id,
    cells: [
      <Link key="address" to={link("/executors", { tenant: app.tenant, app: app.name, executor: executor.id })}>
        {executor.address}
      </Link>,
      t(`library.${libraryOf(executor.version)}`),
      <span key="agent" className="mono">
        {executor.version === "" ? "–" : executor.version}
      </span>,
      <Word key="state" tone={EXECUTOR_TONES[stateOf(executor)]}>
        {own(`executors.state.${stateOf(executor)}`)}
      </Word>,
    ],
  }));
  return (
    <div>
      <Typography.Title level={3} className="section-title">
        {t("executors.title")}
      </Typography.Title>
      <Failure error={error} again={again} />
      {isKnown && executors.length === 0 && <p className="card-lead">{t("executors.none")}</p>}
      {rows.length > 0 && (
        <div className="scrolls-aside">
          <SmallTable columns={columns} rows={rows} />
        </div>
      )}
      {executors.length > SHOWN && (
        <Link to={link("/executors", { tenant: app.tenant, app: app.name })}>{t("executors.more", { n: executors.length - SHOWN })}</Link>
      )}
      {libraries.length > 0 && <Differences of={libraries} />}
    </div>
  );
}

/** What is different for them, for all and for each library. */
function Differences({ of }: { of: readonly Library[] }) {
  const { t } = useTranslation("xxljob");
  return (
    <Flex vertical gap={4} className="door-differences">
      <Typography.Title level={3} className="section-title">
        {t("differs.title")}
      </Typography.Title>
      <ul className="bulk-names">
        {(["start", "serial", "capacity"] as const).map((word) => (
          <li key={word}>{t(`differs.${word}`)}</li>
        ))}
        {of.map((library) => (
          <li key={library}>
            <strong>{`${t(`library.${library}`)}: `}</strong>
            {t(`differs.of.${library}`)}
          </li>
        ))}
      </ul>
    </Flex>
  );
}

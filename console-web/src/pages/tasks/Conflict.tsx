/** Another user changed the task during editing: what they changed, and what to do with the edit. */
import { Alert, Button, Flex } from "antd";
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Schema } from "../../api/client";
import { definitionOf, FIELDS, type Definition } from "../../lib/definition";
import { diff } from "../../lib/diff";
import { Changes } from "./Changes";
import type { Meanwhile } from "./useSave";

interface Properties {
  conflict: Meanwhile;
  typed: Definition;
  onLoad: (values: Definition) => void;
  onSettled: (latest: Schema<"Task">) => void;
}

/** Keeps what was typed in sight, also after the new version has taken its place in the form. */
export function Conflict(properties: Properties) {
  const place = useRef<HTMLDivElement>(null);
  const { revision } = properties.conflict.latest;
  // The user has just pressed Save and looks elsewhere.
  useEffect(() => place.current?.focus(), [revision]);
  return (
    <div ref={place} tabIndex={-1} className="conflict">
      {/* Another conflict needs another decision. */}
      <Decision key={revision} {...properties} />
    </div>
  );
}

function Decision({ conflict: { base, latest }, typed, onLoad, onSettled }: Properties) {
  const { t } = useTranslation("tasks");
  const [decided, setDecided] = useState<{ how: "loaded" | "kept"; typed: Definition }>();
  const now = definitionOf(latest);
  const decide = (how: "loaded" | "kept") => {
    setDecided({ how, typed });
    onSettled(latest);
    if (how === "loaded") onLoad(now);
  };
  const yours = diff(now, decided?.typed ?? typed, FIELDS);
  if (decided !== undefined) {
    return <Alert type="info" showIcon title={t(`conflict.${decided.how}`)} description={<Changes changes={yours} />} />;
  }
  return (
    <Alert
      type="warning"
      showIcon
      role="alert"
      title={t("conflict.title")}
      description={
        <Flex vertical gap="small">
          <span>{t("conflict.text")}</span>
          <strong>{t("conflict.theirs")}</strong>
          <Changes changes={diff(definitionOf(base), now, FIELDS)} />
          <strong>{t("conflict.yours")}</strong>
          <Changes changes={yours} />
          <Flex gap="small" wrap>
            <Button onClick={() => decide("loaded")}>{t("conflict.load")}</Button>
            <Button onClick={() => decide("kept")}>{t("conflict.keep")}</Button>
          </Flex>
        </Flex>
      }
    />
  );
}

/** The form of a new user, and the password that the node generated for them, shown once. */
import { Form, Input, Radio, Typography } from "antd";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useNavigate } from "react-router";
import { client, type Schema } from "../../api/client";
import { PLATFORM, tenantOf, useScopes } from "../../lib/scopes";
import { useLink } from "../../lib/tenant";
import { FormModal } from "../../parts/FormModal";
import { ScopeField } from "../../parts/ScopeField";
import { Secret } from "../../parts/Secret";

/** As the node has it. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$/;

interface Values {
  name: string;
  display_name: string;
  tenant: string;
  how: "generated" | "given";
  password?: string;
}

function create({ name, display_name, tenant, how, password }: Values) {
  return client.POST("/users", {
    body: { name, display_name, tenant: tenantOf(tenant), password: how === "given" ? (password ?? "") : null },
  });
}

export function CreateUser({ open, onClose }: { open: boolean; onClose: () => void }) {
  const { t } = useTranslation("people");
  const common = useTranslation();
  const link = useLink();
  const navigate = useNavigate();
  const scopes = useScopes("users.create", true);
  const [made, setMade] = useState<Schema<"CreatedUser">>();
  // A new user has no permissions: the next step is on their page.
  const goOn = (id: string | undefined) => {
    setMade(undefined);
    if (id !== undefined) void navigate(link(`/users/${id}`));
  };
  return (
    <>
      <FormModal<Values, Awaited<ReturnType<typeof create>>>
        open={open}
        title={t("users.create_title")}
        submitLabel={common.t("create")}
        initial={{ name: "", display_name: "", tenant: scopes.first === "" ? PLATFORM : scopes.first, how: "generated" }}
        submit={create}
        then={({ data }) => (data?.password == null ? goOn(data?.id) : setMade(data))}
        onClose={onClose}
      >
        <Form.Item name="name" label={t("users.name")} extra={t("users.name_help")} rules={[{ required: true, pattern: NAME, message: t("users.name_rule") }]}>
          <Input autoComplete="off" />
        </Form.Item>
        <Form.Item name="display_name" label={t("users.display_name")}>
          <Input maxLength={100} autoComplete="off" />
        </Form.Item>
        <ScopeField name="tenant" label={t("users.managed_by")} help={t("users.managed_by_help")} tenants={scopes.tenants} platform={scopes.platform ? common.t("the_platform") : undefined} />
        <Form.Item name="how" label={t("users.password")}>
          <Radio.Group
            options={[
              { value: "generated", label: t("users.password_generated") },
              { value: "given", label: t("users.password_given") },
            ]}
          />
        </Form.Item>
        <Form.Item noStyle dependencies={["how"]}>
          {(form) =>
            (form.getFieldValue("how") as Values["how"]) === "given" && (
              <Form.Item name="password" label={t("users.password")} extra={t("users.password_help")} rules={[{ required: true, min: 12 }]}>
                <Input.Password autoComplete="new-password" />
              </Form.Item>
            )
          }
        </Form.Item>
      </FormModal>
      <Secret title={t("users.password_title", { name: made?.name ?? "" })} value={made?.password ?? undefined} onClose={() => goOn(made?.id)}>
        <Typography.Text>{t("users.password_text")}</Typography.Text>
      </Secret>
    </>
  );
}

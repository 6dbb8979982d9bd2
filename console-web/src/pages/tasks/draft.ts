/** What the editor holds while one types. */
import type { FieldError } from "../../api/client";
import type { Definition, Field } from "../../lib/definition";

/** Fields whose value is of a type. */
export type FieldOf<Type> = { [Name in Field]: Definition[Name] extends Type ? (Type extends Definition[Name] ? Name : never) : never }[Field];

export interface Draft {
  /** Names of the task's tenant and app; empty until they are chosen. */
  tenant: string;
  app: string;
  values: Definition;
  set: <Name extends Field>(name: Name, value: Definition[Name]) => void;
  /** Sets a choice by its word; a word that is none of its words changes nothing. */
  choose: (name: Field, word: string) => void;
  errors: readonly FieldError[];
}

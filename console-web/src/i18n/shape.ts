/** The shape of a bundle: the keys of the English one with any texts, so that no language lacks one. */
export type Like<Bundle> = { [Key in keyof Bundle]: Bundle[Key] extends string ? string : Like<Bundle[Key]> };

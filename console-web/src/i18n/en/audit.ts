export default { title: "audit" } as const;

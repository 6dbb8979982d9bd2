export default { title: "admin" } as const;

export default { title: "schedule" } as const;

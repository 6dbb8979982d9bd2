export default { title: "calendars" } as const;

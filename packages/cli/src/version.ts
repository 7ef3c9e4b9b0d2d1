/** The version of every package of this repository; a test holds it against package.json. */
export const version = "1.0.3";

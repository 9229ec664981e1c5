import java.io.BufferedReader;
import java.io.InputStreamReader;

/**
 * Answers each line of standard input, "EVENTS SECONDS", with a line "EVENTS MATCHES SECONDS" of what was done. The
 * arguments: "loop" or "job", the file of the events, the name of the workload.
 */
public final class Peer {
    private Peer() {}

    public static void main(String[] arguments) throws Exception {
        Event[] events = EventFile.read(arguments[1]);
        boolean bare = arguments[0].equals("loop");
        NfaLoop loop = bare ? new NfaLoop(events, arguments[2]) : null;
        LocalJob job = bare ? null : new LocalJob(events, arguments[2]);
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
        for (String request = requests.readLine(); request != null; request = requests.readLine()) {
            String[] words = request.split(" ");
            int most = Integer.parseInt(words[0]);
            Measured measured = bare ? loop.run(most, Double.parseDouble(words[1])) : job.run(most);
            System.out.println(measured.events() + " " + measured.matches() + " " + measured.seconds());
        }
        System.exit(0); // Flink leaves threads behind
    }
}

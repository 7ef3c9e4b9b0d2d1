import com.amazonaws.services.dynamodbv2.AcquireLockOptions;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBLockClient;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBLockClientOptions;
import com.amazonaws.services.dynamodbv2.LockItem;
import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.net.URI;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.core.interceptor.Context;
import software.amazon.awssdk.core.interceptor.ExecutionAttributes;
import software.amazon.awssdk.core.interceptor.ExecutionInterceptor;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;

/**
 * Lock clients by Amazon, told what to do line by line. A line is a number, a verb and its arguments, with tabs between them.
 * The answer is the number, "ok" or "error", and a text.
 */
final class Peer {
  /** A caller of the other contenders waits for as long as it takes. */
  private static final long WAIT_HOURS = 24;

  private static final AtomicLong requests = new AtomicLong();
  /** By endpoint, so that each place has connections of its own. */
  private static final Map<String, DynamoDbClient> connections = new ConcurrentHashMap<>();
  private static final Map<String, Opened> clients = new ConcurrentHashMap<>();
  private static final Map<String, LockItem> locks = new ConcurrentHashMap<>();

  private record Opened(AmazonDynamoDBLockClient client, Set<Thread> waiting) {}

  public static void main(String[] args) throws Exception {
    ExecutorService callers = Executors.newCachedThreadPool();
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] words = line.split("\t", -1);
      // In the order of the lines: what comes next needs it.
      if (words[1].equals("open")) answer(words);
      else callers.execute(() -> answer(words));
    }
    System.exit(0);
  }

  private static void answer(String[] words) {
    String said;
    try {
      said = "ok\t" + perform(words);
    } catch (Throwable error) {
      said = "error\t" + error.toString().replaceAll("\\s+", " ");
    }
    synchronized (System.out) {
      System.out.println(words[0] + "\t" + said);
    }
  }

  private static String perform(String[] words) throws Exception {
    switch (words[1]) {
      case "open":
        clients.put(words[2], open(words));
        return "";
      case "acquire":
        locks.put(words[0], acquire(clients.get(words[2]), words[3]));
        return words[0];
      case "release":
        LockItem lock = locks.remove(words[2]);
        lock.close();
        return "";
      case "close":
        Opened opened = clients.remove(words[2]);
        opened.waiting.forEach(Thread::interrupt);
        opened.client.close();
        return "";
      case "used":
        OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        return system.getProcessCpuTime() / 1000 + " " + requests.get();
      case "heap":
        return "" + heapBytes();
      default:
        throw new IllegalArgumentException("no such verb: " + words[1]);
    }
  }

  /** What a collection has made unreachable may be freed by a later one only: such as what compiling this file has left. */
  private static long heapBytes() {
    long least = Long.MAX_VALUE;
    for (int collections = 0; collections < 5; collections++) {
      System.gc();
      least = Math.min(least, ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed());
    }
    return least;
  }

  private static Opened open(String[] words) {
    DynamoDbClient dynamodb =
        connections.computeIfAbsent(words[3], endpoint -> connect(endpoint, words[4], words[5], words[6]));
    long heartbeatMs = Long.parseLong(words[9]);
    AmazonDynamoDBLockClientOptions.AmazonDynamoDBLockClientOptionsBuilder options =
        AmazonDynamoDBLockClientOptions.builder(dynamodb, words[7])
            .withPartitionKeyName("id")
            .withTimeUnit(TimeUnit.MILLISECONDS)
            .withLeaseDuration(Long.parseLong(words[8]))
            .withHeartbeatPeriod(heartbeatMs)
            .withCreateHeartbeatBackgroundThread(heartbeatMs > 0);
    return new Opened(new AmazonDynamoDBLockClient(options.build()), ConcurrentHashMap.newKeySet());
  }

  private static LockItem acquire(Opened opened, String key) throws InterruptedException {
    AcquireLockOptions options =
        AcquireLockOptions.builder(key)
            .withAdditionalTimeToWaitForLock(TimeUnit.HOURS.toMillis(WAIT_HOURS))
            .withTimeUnit(TimeUnit.MILLISECONDS)
            .build();
    opened.waiting.add(Thread.currentThread());
    try {
      return opened.client.acquireLock(options);
    } finally {
      opened.waiting.remove(Thread.currentThread());
    }
  }

  private static DynamoDbClient connect(String endpoint, String region, String id, String secret) {
    ExecutionInterceptor counter =
        new ExecutionInterceptor() {
          @Override
          public void beforeTransmission(Context.BeforeTransmission context, ExecutionAttributes attributes) {
            requests.incrementAndGet();
          }
        };
    return DynamoDbClient.builder()
        .endpointOverride(URI.create(endpoint))
        .region(Region.of(region))
        .credentialsProvider(StaticCredentialsProvider.create(AwsBasicCredentials.create(id, secret)))
        .overrideConfiguration(configuration -> configuration.addExecutionInterceptor(counter))
        .build();
  }
}
